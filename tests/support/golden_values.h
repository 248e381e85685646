// What a make.cc (against BVLC Caffe) and the test that reads its golden (against Crema) must agree on: the cases, the
// values that fill them, and the file.
#pragma once
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace golden {

struct Case {
  std::string name, layer, params;
  bool test = false, backward = true;
  std::vector<std::vector<int>> shapes;
  std::vector<std::string> fillings;
};

inline std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts;
  std::stringstream in(text);
  for (std::string part; std::getline(in, part, at);) parts.push_back(part);
  return parts;
}

inline std::vector<Case> cases(const std::string& file) {
  std::vector<Case> all;
  std::ifstream in(file);
  if (!in) throw std::runtime_error("no " + file);
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line[0] == '#') continue;
    const auto column = split(line, '|');
    Case c{column.at(0), column.at(5), column.at(4)};
    c.test = column[1].rfind("TEST", 0) == 0;
    c.backward = column[1].back() != '!';
    for (const auto& shape : split(column[2], ';')) {
      c.shapes.emplace_back();
      for (const auto& dim : split(shape, ',')) c.shapes.back().push_back(std::atoi(dim.c_str()));
    }
    c.fillings = split(column[3], ';');
    all.push_back(c);
  }
  return all;
}

// The value of element k of array `which` (bottoms 0.., parameters 100.., gradients of tops 200..): multiples of 2^-15,
// exact in float.
inline float value(const std::string& filling, int which, int k) {
  uint32_t h = static_cast<uint32_t>(k) * 2654435761u + static_cast<uint32_t>(which) * 40503u + 977u;
  h ^= h >> 15, h *= 2246822519u, h ^= h >> 13;
  const float unit = static_cast<float>(h & 65535u) / 65536.f;
  switch (filling[0]) {
    case 'p':
      return unit + 0.1f;
    case 'l':
      return static_cast<float>((h >> 8) % static_cast<uint32_t>(std::atoi(filling.c_str() + 1)));
    case 'b':
      return static_cast<float>((h >> 8) & 1u);
    case 'z':
      return 0;
    case 'o':
      return 1;
    default:
      return 2 * unit - 1;
  }
}
inline bool hasGradient(const std::string& filling) { return filling[0] == 's' || filling[0] == 'p'; }

// A golden file: sets of arrays, each a number of arrays, and these as float32 values behind their count (all numbers
// uint32; little endian).
using Arrays = std::vector<std::vector<float>>;

inline void write(std::ostream& out, const Arrays& arrays) {
  const auto number = [&](size_t n) {
    const auto value = static_cast<uint32_t>(n);
    out.write(reinterpret_cast<const char*>(&value), sizeof value);
  };
  number(arrays.size());
  for (const auto& a : arrays) {
    number(a.size());
    out.write(reinterpret_cast<const char*>(a.data()), static_cast<std::streamsize>(4 * a.size()));
  }
}

class Reader {
 public:
  explicit Reader(std::string bytes) : bytes_(std::move(bytes)) {}
  Arrays next() {
    Arrays arrays(number());
    for (auto& a : arrays) {
      a.resize(number());
      take(a.data(), 4 * a.size());
    }
    return arrays;
  }
  bool ended() const { return at_ == bytes_.size(); }

 private:
  void take(void* to, size_t count) {
    if (bytes_.size() - at_ < count) throw std::runtime_error("the golden file is too short");
    if (count) std::memcpy(to, bytes_.data() + at_, count);
    at_ += count;
  }
  uint32_t number() {
    uint32_t value = 0;
    take(&value, sizeof value);
    return value;
  }

  std::string bytes_;
  size_t at_ = 0;
};

}  // namespace golden
