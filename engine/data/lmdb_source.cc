// LMDB through its own library, read-only and without its lock file, so that read-only folders and several processes
// are fine. Keys and values are indexed once at open as pointers into the map: read(i) is two loads, and nothing is
// copied. Cost: 32 bytes a record.
#include <lmdb.h>
#include <sys/stat.h>

#include <cstring>
#include <fstream>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "data/source.h"

namespace crema {
namespace {

constexpr uint32_t kLmdbMagic = 0xBEEFC0DE;

// Page 0 and page 1 are meta pages: a 16-byte page header, then magic u32, version u32, address u64, map size u64, two
// 48-byte tree records, last page u64, transaction u64. The page size stands in the first word of the first tree
// record.
struct Meta {
  uint32_t magic, version;
  uint64_t address, mapSize;
  uint32_t pageSize;
  char trees[2 * 48 - 4];
  uint64_t lastPage, transaction;
};

// A truncated file would be mapped and fault at its first missing page: compare its size with what the newer meta page
// promises.
void checkWhole(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) ioError("cannot open {}: {}; check the path and the permissions", file, systemError(errno));
  struct stat about {};
  ::stat(file.c_str(), &about);
  const auto size = static_cast<uint64_t>(about.st_size);
  Meta newest{};
  uint64_t page = 4096;
  for (int i = 0; i < 2; ++i) {
    Meta m{};
    in.seekg(static_cast<std::streamoff>(i == 0 ? 16 : page + 16));
    if (!in.read(reinterpret_cast<char*>(&m), sizeof m))
      badData("{} has only {} bytes and is no LMDB; copy or convert it again", file, size);
    if (m.magic != kLmdbMagic)
      badData("{} is no LMDB (its first bytes are something else); is it a LevelDB, or another kind of file?", file);
    if (i == 0) page = m.pageSize;
    if (page < 512 || page > 65536) badData("{} is damaged: it claims pages of {} bytes", file, page);
    if (m.transaction >= newest.transaction) newest = m;
  }
  const uint64_t need = (newest.lastPage + 1) * page;
  if (size < need)
    badData("{} is truncated: it has {} bytes and its index promises {}; the copy was cut short, copy it again", file,
            size, need);
}

class LmdbSource : public RecordSource {
 public:
  explicit LmdbSource(const std::string& path) : path_(path) {
    if (!fileExists(path))
      ioError("there is no LMDB at {}; check `source` (relative paths start at the working folder)", path);
    const bool folder = isDirectory(path);
    const std::string file = folder ? joinPath(path, "data.mdb") : path;
    if (!fileExists(file)) {
      if (fileExists(joinPath(path, "CURRENT")))
        badData("{} is a LevelDB; this version reads LMDB: convert the records", path);
      badData("{} holds no data.mdb, so it is no LMDB; check `source`", path);
    }
    checkWhole(file);
    open(folder);
    try {
      index();
    } catch (...) {
      close();
      throw;
    }
  }
  ~LmdbSource() override { close(); }
  int64_t size() const override { return static_cast<int64_t>(records_.size()); }
  Record read(int64_t i) const override { return records_[static_cast<size_t>(i)]; }
  std::string describe() const override { return "LMDB " + path_; }

 private:
  void check(int code, const char* what) const {
    if (code != MDB_SUCCESS)
      badData("cannot {} {}: {}; copy or convert it again", what, describe(), mdb_strerror(code));
  }

  void open(bool folder) {
    check(mdb_env_create(&env_), "open");
    const int code =
        mdb_env_open(env_, path_.c_str(), MDB_RDONLY | MDB_NOTLS | MDB_NOLOCK | (folder ? 0u : MDB_NOSUBDIR), 0664);
    if (code != MDB_SUCCESS) {
      mdb_env_close(env_);
      env_ = nullptr;
    }
    check(code, "open");
  }

  void index() {
    check(mdb_txn_begin(env_, nullptr, MDB_RDONLY, &txn_), "read");
    MDB_dbi dbi = 0;
    check(mdb_dbi_open(txn_, nullptr, 0, &dbi), "read");
    MDB_stat stat{};
    check(mdb_stat(txn_, dbi, &stat), "read");
    if (stat.ms_entries == 0) badData("{} holds no records; was its conversion interrupted?", describe());
    records_.reserve(stat.ms_entries);
    MDB_cursor* cursor = nullptr;
    check(mdb_cursor_open(txn_, dbi, &cursor), "read");
    MDB_val key{}, value{};
    int code = mdb_cursor_get(cursor, &key, &value, MDB_FIRST);
    for (; code == MDB_SUCCESS; code = mdb_cursor_get(cursor, &key, &value, MDB_NEXT))
      records_.push_back({{static_cast<const char*>(key.mv_data), key.mv_size},
                          {static_cast<const char*>(value.mv_data), value.mv_size}});
    mdb_cursor_close(cursor);
    if (code != MDB_NOTFOUND) check(code, "read");
  }

  void close() {
    if (txn_) mdb_txn_abort(txn_);
    if (env_) mdb_env_close(env_);
  }

  std::string path_;
  MDB_env* env_ = nullptr;
  MDB_txn* txn_ = nullptr;
  std::vector<Record> records_;
};

}  // namespace

std::shared_ptr<const RecordSource> openSource(caffe::DataParameter::DB backend, const std::string& path) {
  if (path.empty()) invalid("the data layer names no `source`; give the path of its database");
  if (backend == caffe::DataParameter::LEVELDB)
    invalid(
        "{}: `backend: LEVELDB` (also the default) is not read by this version; say `backend: LMDB`, and convert the "
        "records if need be",
        path);
  return std::make_shared<LmdbSource>(path);
}

}  // namespace crema
