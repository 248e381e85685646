// MNIST's idx files. Bytes, big endian: images u32 2051 · count · rows · columns, then pixels; labels u32 2049 · count,
// then bytes.
#pragma once
#include <cstdint>
#include <string>

namespace crema::data {

struct IdxImages {
  int count = 0, rows = 0, columns = 0;
  std::string pixels;  // count * rows * columns
};

IdxImages readIdxImages(const std::string& path);  // throws kData for a wrong magic number, sizes or length
std::string readIdxLabels(const std::string& path);

// As Caffe's convert_mnist_data: records of 1 x rows x columns, keys %08d. Returns the number of records.
int64_t convertMnist(const std::string& images, const std::string& labels, const std::string& database,
                     const std::string& backend = "lmdb");

}  // namespace crema::data
