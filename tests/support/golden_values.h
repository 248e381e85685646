// Shared by each make.cc (which runs BVLC Caffe) and the test that reads its golden (which runs Crema): the cases, the
// values that fill them, and the file's format.
#pragma once
#include <algorithm>
#include <cmath>
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
  int passes = 1;
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
    const size_t mark = column[1].find('!');
    c.backward = mark == std::string::npos;
    if (!c.backward && mark + 1 < column[1].size()) c.passes = std::atoi(column[1].c_str() + mark + 1);
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
    case 'w':
      return 16 * unit - 8;
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
// Silence and HDF5Output have no top; other layers have one where the description names none.
inline int topsOf(const std::string& type, int named) {
  return type == "Silence" || type == "HDF5Output" ? 0 : std::max(1, named);
}
// A description with the folder of this run's own files in place of @.
inline std::string placed(std::string text, const std::string& folder) {
  for (size_t at; (at = text.find('@')) != std::string::npos;) text.replace(at, 1, folder);
  return text;
}
inline bool hasGradient(const std::string& filling) { return std::string("spw").find(filling[0]) != std::string::npos; }

// What fills whole nets: value() in [-1, 1], times `scale`, plus `shift`; or numbers of so many classes.
struct Filling {
  std::string kind;
  int which;
  double scale = 1, shift = 0;
  float at(int k) const { return static_cast<float>(scale * value(kind, which, k) + shift); }
};
// Weights such that activations keep their size through ReLUs (He 2015); vectors (biases, scales) in [0, 1].
inline Filling ofParameter(int number, const std::vector<int>& shape) {
  int fanIn = 1;
  for (size_t i = 1; i < shape.size(); ++i) fanIn *= shape[i];
  if (shape.size() > 1) return {"s", 100 + number, std::sqrt(6.0 / fanIn)};
  return {"s", 100 + number, 0.5, 0.5};
}
inline Filling ofInput(int number, int axes) { return {axes == 1 ? "l1000" : "s", number}; }
inline Filling ofOutput(int number) { return {"s", 200 + number}; }

// The root of the sum of squares, the largest absolute value, and the values; of more than 240 some 120.
inline std::vector<float> summary(const double* values, int count) {
  double squares = 0, largest = 0;
  for (int k = 0; k < count; ++k) squares += values[k] * values[k], largest = std::max(largest, std::fabs(values[k]));
  std::vector<float> all = {static_cast<float>(std::sqrt(squares)), static_cast<float>(largest)};
  const int step = count > 240 ? count / 120 : 1;
  for (int k = 0; k < count; k += step) all.push_back(static_cast<float>(values[k]));
  return all;
}
// The largest difference of two summaries, relative to `wanted`'s root and largest value, at least to `least`.
inline double distance(const std::vector<float>& got, const std::vector<float>& wanted, double least) {
  double apart = std::fabs(got[0] - wanted[0]) / std::max<double>(wanted[0], least);
  for (size_t k = 1; k < wanted.size(); ++k)
    apart = std::max(apart, std::fabs(got[k] - wanted[k]) / std::max<double>(wanted[1], least));
  return apart;
}

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
