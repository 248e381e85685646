// Writes a LevelDB with Caffe's options: blocks of 64 KiB, tables of 256 MiB of records, snappy.
#include <leveldb/db.h>
#include <leveldb/write_batch.h>

#include "base/error.h"
#include "base/file.h"
#include "base/temporary.h"
#include "data/lmdb_writer.h"

namespace crema::data {
namespace {

class LevelDbWriter : public RecordWriter {
 public:
  explicit LevelDbWriter(const std::string& path) : path_(path), part_(path) {
    leveldb::Options options;
    options.block_size = 65536;
    options.write_buffer_size = size_t{256} << 20;
    options.max_open_files = 100;
    options.create_if_missing = options.error_if_exists = true;
    leveldb::DB* db = nullptr;
    check(leveldb::DB::Open(options, part_.name(), &db), "create");
    db_.reset(db);
  }

  void put(std::string_view key, std::string_view value) override {
    batch_.Put({key.data(), key.size()}, {value.data(), value.size()});
    ++written_;
    if (written_ % kCommitEvery == 0 || batch_.ApproximateSize() > kMostWaiting) commit(false);
  }

  void finish() override {
    commit(true);
    db_.reset();
    part_.finish("LevelDB");
  }

  int64_t written() const override { return written_; }

 private:
  static constexpr int64_t kCommitEvery = 1000;
  static constexpr size_t kMostWaiting = size_t{64} << 20;

  void commit(bool toDisk) {
    leveldb::WriteOptions options;
    options.sync = toDisk;
    check(db_->Write(options, &batch_), "write");
    batch_.Clear();
  }

  void check(const leveldb::Status& status, const char* what) const {
    if (status.ok()) return;
    ioError("cannot {} LevelDB {}: {}; make its parent folder first, free some space, or choose another path", what,
            path_, status.ToString());
  }

  std::string path_;
  PartFolder part_;
  std::unique_ptr<leveldb::DB> db_;
  leveldb::WriteBatch batch_;
  int64_t written_ = 0;
};

}  // namespace

caffe::DataParameter::DB parseBackend(const std::string& name) {
  if (name == "lmdb") return caffe::DataParameter::LMDB;
  if (name == "leveldb") return caffe::DataParameter::LEVELDB;
  invalid("there is no backend '{}'; it is lmdb or leveldb", name);
}

std::unique_ptr<RecordWriter> makeRecordWriter(caffe::DataParameter::DB backend, const std::string& path) {
  if (path.empty()) invalid("the database to make has no path");
  if (backend == caffe::DataParameter::LMDB) return std::make_unique<LmdbWriter>(path);
  return std::make_unique<LevelDbWriter>(path);
}

}  // namespace crema::data
