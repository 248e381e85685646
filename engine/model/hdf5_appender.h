// An HDF5 file of datasets that grow by rows, whole after every append: what is there is flushed to it, and a reader
// may open it. libhdf5 is held by hdf5Mutex() meanwhile.
#pragma once
#include <memory>
#include <string>
#include <vector>

namespace crema::model {

class Hdf5Appender {
 public:
  struct Rows {
    std::string dataset;
    std::vector<int> dims;  // the first is the number of rows
    bool wide;              // double, else float
    const void* values;
  };
  explicit Hdf5Appender(const std::string& path);  // what was there is gone. kIo
  ~Hdf5Appender();
  Hdf5Appender(const Hdf5Appender&) = delete;
  // The first call makes the datasets; others must have the same rows. kInvalid, kIo
  void append(const std::vector<Rows>& all);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace crema::model
