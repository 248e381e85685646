#include "base/new_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>

#include "base/error.h"
#include "base/file.h"

namespace crema {
namespace {
constexpr uint64_t kFlushBytes = 64u << 20;
}

NewFile::NewFile(std::string path) : path_(std::move(path)), part_(fmt::format("{}.tmp-{}", path_, ::getpid())) {
  fd_ = ::open(part_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd_ < 0) refused();
}

NewFile::~NewFile() {
  if (fd_ < 0) return;
  ::close(fd_);
  ::unlink(part_.c_str());
}

void NewFile::refused() { ioError("{} cannot be written: {}; {}", path_, systemError(errno), remedyFor(errno)); }

void NewFile::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd_, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) refused();
    bytes.remove_prefix(static_cast<size_t>(n));
    size_ += static_cast<uint64_t>(n);
  }
  if (size_ - flushed_ < kFlushBytes) return;
  if (::fdatasync(fd_) != 0 && errno != EINVAL) refused();
  flushed_ = size_;
}

void NewFile::commit() {
  if (::fsync(fd_) != 0 && errno != EINVAL) refused();
  if (std::rename(part_.c_str(), path_.c_str()) != 0) refused();
  ::close(std::exchange(fd_, -1));
  const int folder = ::open(parentDirectory(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return;
  ::fsync(folder);  // the rename itself reaches the disk
  ::close(folder);
}

}  // namespace crema
