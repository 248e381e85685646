// What make.cc (against BVLC Caffe) and golden_test.cc (against Crema) must agree on: the cases and the values that
// fill them.
#pragma once
#include <cstdint>
#include <cstdlib>
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

}  // namespace golden
