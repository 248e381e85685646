// An LMDB as numbered records: the file is mapped and indexed once at open; read(i) is two loads, and nothing is
// copied. No lock is taken and nothing written, so read-only folders and several processes are fine. Cost: 32 bytes a
// record.
#include "base/error.h"
#include "base/file.h"
#include "base/mapped_file.h"
#include "data/lmdb_pages.h"
#include "data/source.h"

namespace crema {
namespace {

// A folder with data.mdb, or such a file itself.
std::string dataFile(const std::string& path) {
  if (!fileExists(path))
    ioError("there is no LMDB at {}; check `source` (relative paths start at the working folder)", path);
  if (!isDirectory(path)) return path;
  const std::string file = joinPath(path, "data.mdb");
  if (fileExists(file)) return file;
  if (fileExists(joinPath(path, "CURRENT")))
    badData("{} is a LevelDB; this version reads LMDB: convert the records", path);
  badData("{} holds no data.mdb, so it is no LMDB; check `source`", path);
}

class LmdbSource : public RecordSource {
 public:
  explicit LmdbSource(const std::string& path)
      : path_(path), file_(dataFile(path)), records_(lmdbRecords(file_.bytes(), dataFile(path))) {}
  int64_t size() const override { return static_cast<int64_t>(records_.size()); }
  Record read(int64_t i) const override { return records_[static_cast<size_t>(i)]; }
  std::string describe() const override { return "LMDB " + path_; }

 private:
  std::string path_;
  MappedFile file_;
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
