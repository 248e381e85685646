// An HDF5 file of datasets that grow by rows, complete after every append: rows are flushed, and a reader may open it.
// Holds hdf5Mutex() during calls.
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
  explicit Hdf5Appender(const std::string& path);  // replaces an existing file; throws kIo
  ~Hdf5Appender();
  Hdf5Appender(const Hdf5Appender&) = delete;
  // The first call creates the datasets; later rows must have the same names and shapes. Throws kInvalid, kIo.
  void append(const std::vector<Rows>& all);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace crema::model
