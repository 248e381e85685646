// Records in a LevelDB's logs that no table has yet: all of a small database, as Caffe's tools leave it. Values stay in
// the mapped files.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/mapped_file.h"
#include "data/leveldb_format.h"

namespace crema::data::ldb {

class Logs {
 public:
  struct Entry {
    std::string key;
    uint64_t tag;  // sequence << 8 | kind
    uint32_t file;
    LogSpan value;
  };
  void add(const std::string& path);  // reads all of it once
  void sort();                        // by key, of one key the latest first
  const std::vector<Entry>& entries() const { return entries_; }
  std::string value(const Entry& e) const;

 private:
  void addBatch(std::string_view file, LogSpan record, const std::string& path);

  std::vector<std::unique_ptr<MappedFile>> files_;
  std::vector<Entry> entries_;
};

}  // namespace crema::data::ldb
