#include "data/database_writer.h"

#include "base/error.h"
#include "data/lmdb_writer.h"

namespace crema {
namespace {

class LmdbDatabase : public DatabaseWriter {
 public:
  explicit LmdbDatabase(const std::string& path) : writer_(path) {}
  void put(std::string_view key, std::string_view value) override { writer_.put(key, value); }
  void commit() override { writer_.finish(); }
  int64_t written() const override { return writer_.written(); }

 private:
  LmdbWriter writer_;
};

}  // namespace

caffe::DataParameter::DB parseBackend(const std::string& name) {
  if (name == "lmdb") return caffe::DataParameter::LMDB;
  if (name == "leveldb") return caffe::DataParameter::LEVELDB;
  invalid("Unknown database backend '{}'; it is lmdb or leveldb", name);
}

std::unique_ptr<DatabaseWriter> createDatabase(caffe::DataParameter::DB backend, const std::string& path) {
  if (path.empty()) invalid("the database to make has no path");
  if (backend == caffe::DataParameter::LMDB) return std::make_unique<LmdbDatabase>(path);
  invalid("{}: this version writes no LevelDB; say lmdb", path);
}

}  // namespace crema
