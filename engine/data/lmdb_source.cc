// An LMDB as numbered records: the pages of its index are read once at open; read(i) is a search among the leaf pages,
// and nothing is copied. No lock is taken and nothing written, so read-only folders and several processes are fine.
#include "base/error.h"
#include "base/file.h"
#include "data/lmdb_pages.h"
#include "data/source.h"

namespace crema::data {
namespace {

// A folder with data.mdb, or such a file itself.
std::string dataFile(const std::string& path) {
  if (!fileExists(path))
    ioError(
        "there is no LMDB at {}; check `source`, or the path that was given (relative ones start at the working "
        "folder, else at the prototxt's)",
        path);
  if (!isDirectory(path)) return path;
  const std::string file = joinPath(path, "data.mdb");
  if (fileExists(file)) return file;
  if (fileExists(joinPath(path, "CURRENT")))
    invalid("{} is a LevelDB, and an LMDB is wanted; a Data layer reads it with `backend: LEVELDB` in data_param",
            path);
  badData("{} holds no data.mdb, so it is no LMDB; check `source`, or the path that was given", path);
}

class LmdbSource : public RecordSource {
 public:
  LmdbSource(std::shared_ptr<const FileBytes> file, LmdbIndex index, std::string path)
      : path_(std::move(path)), file_(std::move(file)), index_(std::move(index)) {}
  int64_t size() const override { return index_.records(); }
  Record read(int64_t i) const override { return lmdbRecord(*file_, index_, i, path_); }
  std::string describe() const override { return "LMDB " + path_; }

 private:
  std::string path_;
  std::shared_ptr<const FileBytes> file_;
  LmdbIndex index_;
};

}  // namespace

std::shared_ptr<const RecordSource> lmdbSource(std::shared_ptr<const FileBytes> file, LmdbIndex index,
                                               const std::string& path) {
  return std::make_shared<LmdbSource>(std::move(file), std::move(index), path);
}

std::shared_ptr<const RecordSource> lmdbSource(const std::string& path) {
  const std::string file = dataFile(path);
  const auto bytes = std::make_shared<LocalFileBytes>(file);
  return lmdbSource(bytes, lmdbIndex(*bytes, file), path);
}

}  // namespace crema::data
