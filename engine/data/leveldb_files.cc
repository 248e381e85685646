#include "data/leveldb_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/fd_io.h"
#include "base/file.h"

namespace crema::data::ldb {

class TableFiles::Open {
 public:
  explicit Open(const std::string& path) : fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (fd_ < 0)
      ioError("cannot open {}: {}; check that the whole database is there and may be read", path, systemError(errno));
  }
  ~Open() { ::close(fd_); }
  Open(const Open&) = delete;
  int fd() const { return fd_; }

 private:
  int fd_;
};

uint32_t TableFiles::add(const std::string& folder, uint64_t number, uint64_t bytes) {
  std::string path = joinPath(folder, fmt::format("{:06d}.ldb", number));
  if (!fileExists(path)) path = joinPath(folder, fmt::format("{:06d}.sst", number));  // the name before LevelDB 1.14
  struct stat about;
  if (::stat(path.c_str(), &about) != 0)
    badData("{} lacks the table {:06d}.ldb (or .sst) that its manifest names; copy the whole folder anew", folder,
            number);
  if (static_cast<uint64_t>(about.st_size) < bytes || bytes < kFooter)
    damaged(path, "it has {} bytes, the manifest says {}", about.st_size, bytes);
  files_.push_back({path, bytes});
  return static_cast<uint32_t>(files_.size() - 1);
}

std::shared_ptr<TableFiles::Open> TableFiles::open(uint32_t file) const {
  const MutexLock lock(mutex_);
  const auto at = std::find_if(open_.begin(), open_.end(), [&](const auto& o) { return o.first == file; });
  if (at != open_.end()) {
    open_.splice(open_.begin(), open_, at);
  } else {
    open_.emplace_front(file, std::make_shared<Open>(path(file)));
    if (open_.size() > kMostOpen) open_.pop_back();
  }
  return open_.front().second;
}

std::string TableFiles::read(uint32_t file, uint64_t offset, uint64_t bytes) const {
  const auto opened = open(file);
  std::string out(bytes, '\0');
  const auto part = [&](size_t at) {
    return ::pread(opened->fd(), out.data() + at, bytes - at, static_cast<off_t>(offset + at));
  };
  if (moveAll(bytes, part)) return out;
  if (errno == 0) damaged(path(file), "it became shorter while it was read");
  ioError("cannot read {}: {}; check the disk", path(file), systemError(errno));
}

std::vector<Handle> TableFiles::blocks(uint32_t file) const {
  const std::string& name = path(file);
  const Block index = block(file, indexHandle(read(file, size(file) - kFooter, kFooter), size(file), name));
  std::vector<Handle> handles;
  for (const auto& entry : index.entries) handles.push_back(blockHandle(index.value(entry), size(file), name));
  return handles;
}

}  // namespace crema::data::ldb
