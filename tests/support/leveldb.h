// LevelDBs for tests: written and read by libleveldb, and read by us.
#pragma once
#include <leveldb/db.h>

#include <filesystem>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "data/source.h"

namespace crema::test::level_db {

using Contents = std::vector<std::pair<std::string, std::string>>;
inline std::shared_ptr<const data::RecordSource> ours(const std::string& path) {
  return data::openSource(caffe::DataParameter::LEVELDB, path);
}

inline Contents all(const data::RecordSource& source) {
  Contents found;
  for (int64_t i = 0; i < source.size(); ++i) {
    const data::Record r = source.read(i);
    found.emplace_back(r.key, r.value);
  }
  return found;
}

class Db {
 public:
  Db(const std::string& path, leveldb::Options options) {
    options.create_if_missing = true;
    leveldb::DB* db = nullptr;
    const auto status = leveldb::DB::Open(options, path, &db);
    if (!status.ok()) throw std::runtime_error(status.ToString());
    db_.reset(db);
  }
  leveldb::DB* operator->() { return db_.get(); }
  Contents contents() {
    Contents found;
    const std::unique_ptr<leveldb::Iterator> at(db_->NewIterator({}));
    for (at->SeekToFirst(); at->Valid(); at->Next()) found.emplace_back(at->key().ToString(), at->value().ToString());
    return found;
  }

 private:
  std::unique_ptr<leveldb::DB> db_;
};

inline int filesEndingIn(const std::string& folder, const std::string& end) {
  int n = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    n += entry.path().extension() == end && std::filesystem::file_size(entry.path()) > 0;
  return n;
}

inline std::map<std::string, std::string> snapshot(const std::string& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    files[entry.path().filename()] = readFile(entry.path());
  return files;
}

inline std::string key(uint64_t i) { return fmt::format("{:08d}_{}", i, std::string(i % 5, 'k')); }

}  // namespace crema::test::level_db
