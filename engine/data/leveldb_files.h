// The files of a LevelDB's folder, read by ranges; a large database has more of them than a process may hold open.
#pragma once
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "data/leveldb_format.h"

namespace crema::data::ldb {

class TableFiles {
 public:
  // Adds a table; returns its index. kData when it is missing or shorter than the manifest says.
  uint32_t add(const std::string& folder, uint64_t number, uint64_t bytes);
  std::string read(uint32_t file, uint64_t offset, uint64_t bytes) const;  // any thread
  Block block(uint32_t file, Handle handle) const {
    return decodeBlock(read(file, handle.offset, handle.bytes + kTrailer), path(file));
  }
  std::vector<Handle> blocks(uint32_t file) const;  // of its records, in order of their keys
  const std::string& path(uint32_t file) const { return files_[file].path; }
  uint64_t size(uint32_t file) const { return files_[file].bytes; }

 private:
  class Open;
  std::shared_ptr<Open> open(uint32_t file) const;
  struct File {
    std::string path;
    uint64_t bytes;
  };
  std::vector<File> files_;
  static constexpr size_t kMostOpen = 32;
  mutable Mutex mutex_;
  mutable std::list<std::pair<uint32_t, std::shared_ptr<Open>>> open_ CREMA_GUARDED_BY(mutex_);  // the last used first
};

}  // namespace crema::data::ldb
