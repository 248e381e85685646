// A database that a tool writes, whatever its kind: records in, one commit per 1000 as Caffe's tools do.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "caffe.pb.h"

namespace crema {

class DatabaseWriter {
 public:
  virtual ~DatabaseWriter() = default;  // without commit(): what was written is removed
  virtual void put(std::string_view key, std::string_view value) = 0;
  virtual void commit() = 0;  // the last call: writes what is left, then the database appears at its path
  virtual int64_t written() const = 0;
};

// "lmdb" or "leveldb", as the tools' -backend says; anything else is kInvalid.
caffe::DataParameter::DB parseBackend(const std::string& name);
// Makes the folder; kIo when there is a database already.
std::unique_ptr<DatabaseWriter> createDatabase(caffe::DataParameter::DB backend, const std::string& path);

}  // namespace crema
