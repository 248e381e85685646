// Reads a float32 .npy in C order, as numpy's format document describes version 1: after 10 bytes a header of the length
// at byte 8, a dict in text with 'shape', then the values.
#pragma once
#include <cstring>
#include <regex>
#include <string>
#include <vector>

#include "base/file.h"

namespace crema::test {

struct NpyArray {
  std::vector<int> shape;
  std::vector<float> values;
};

inline NpyArray readNpy(const std::string& path) {
  const std::string bytes = readFile(path);
  const size_t start = 10 + static_cast<unsigned char>(bytes[8]) + 256 * static_cast<unsigned char>(bytes[9]);
  const std::string header = bytes.substr(10, start - 10);
  NpyArray a;
  const std::string shape = header.substr(header.find('(') + 1);
  const std::regex number("[0-9]+");
  const std::string dims = shape.substr(0, shape.find(')'));
  for (std::sregex_iterator i(dims.begin(), dims.end(), number), end; i != end; ++i)
    a.shape.push_back(std::stoi(i->str()));
  a.values.resize((bytes.size() - start) / 4);
  std::memcpy(a.values.data(), bytes.data() + start, a.values.size() * 4);
  return a;
}

}  // namespace crema::test
