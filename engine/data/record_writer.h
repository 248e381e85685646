// Databases of records as Caffe's tools write them. Until finish() it has a temporary name (base/temporary.h), so that
// an interrupted conversion never looks like a complete database. A writer destroyed before finish() removes it.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "caffe.pb.h"

namespace crema::data {

class RecordWriter {
 public:
  RecordWriter() = default;
  virtual ~RecordWriter() = default;
  RecordWriter(const RecordWriter&) = delete;
  virtual void put(std::string_view key, std::string_view value) = 0;
  virtual void finish() = 0;
  virtual int64_t written() const = 0;
};

// "lmdb" or "leveldb", as the tools' -backend has it; invalid() for another.
caffe::DataParameter::DB parseBackend(const std::string& name);
// kIo when there is something at `path` already, other than an empty folder.
[[nodiscard]] std::unique_ptr<RecordWriter> makeRecordWriter(caffe::DataParameter::DB backend, const std::string& path);

}  // namespace crema::data
