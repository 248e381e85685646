// Rows of HDF5 files as floats: of each named dataset item `row` of its first axis, one dataset's after the other's.
// All of libhdf5's classes of integers and floating point numbers are converted, by libhdf5.
//
// libhdf5 crashes on damaged files (model/trained.h), so it reads in a child that lives as long as this object and
// returns ranges of rows: files larger than memory are read piece by piece, and a crash becomes an error that names the
// file. Decided against: checking a whole file once in a child and reading it here (a pass over all bytes, and libhdf5
// is not thread-safe); and asking libhdf5 for addresses of chunks only (filters would be ours, and it lists chunks in
// quadratic time). Cost: the rows go through a socket; of CIFAR's 3,073 floats 90,000 to 210,000 rows a second in
// order, 33,000 one by one. Chunks that h5py makes by itself for gzip hold 2,500 of them: 11,600 in order, 1,000 one by
// one. Chunks are kept up to 256 MiB for each dataset.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace crema::model {

class Hdf5Rows {
 public:
  Hdf5Rows(std::vector<std::string> files, std::vector<std::string> datasets);
  ~Hdf5Rows();

  struct File {
    int64_t rows;
    std::vector<std::vector<int>> shapes;  // of one row of each dataset: without the first axis
  };
  // Throws kIo when the file is missing, kData when a dataset is missing, of another class, without axes, or of another
  // length than the first. Both functions may be called from any thread.
  File describe(size_t file) const;
  // `count` rows from `first` on: count times the floats of all datasets. `floats`: of one row, as described.
  std::string read(size_t file, int64_t first, int64_t count, int64_t floats) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace crema::model
