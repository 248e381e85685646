// Records by number. The bytes of a record are a serialised caffe.Datum in a database, the fields of a row (data/row.h)
// when a host program sends them.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "caffe.pb.h"

namespace crema::data {

struct Record {
  std::string_view key, value;             // valid while the source and this Record live
  std::shared_ptr<const void> keeps = {};  // keeps memory alive where the record does not lie in the source's
};

class RecordSource {
 public:
  virtual ~RecordSource() = default;
  virtual int64_t size() const = 0;
  virtual Record read(int64_t index) const = 0;  // 0 <= index < size(); any thread
  virtual std::string describe() const = 0;      // "LMDB data/mnist_train_lmdb"
  virtual void close() const {}                  // wakes a reader that waits for records
};

// Throws kIo when it is missing, kData when it is damaged, of another kind or empty.
std::shared_ptr<const RecordSource> openSource(caffe::DataParameter::DB backend, const std::string& path);

}  // namespace crema::data
