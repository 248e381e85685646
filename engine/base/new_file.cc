#include "base/new_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>

#include "base/error.h"
#include "base/fd_io.h"
#include "base/file.h"
#include "base/temporary.h"

namespace crema {
namespace {
constexpr uint64_t kFlushBytes = 64u << 20;
}

NewFile::NewFile(std::string path, uint64_t expected, bool unnamed) : path_(std::move(path)), expected_(expected) {
  if (unnamed) fd_ = ::open(parentDirectory(path_).c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0644);
  if (fd_ < 0) openNamed();
}

NewFile::~NewFile() {
  if (fd_ >= 0) ::close(fd_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void NewFile::openNamed() {
  clearLeftovers(path_);
  for (;;) {
    temporary_ = temporaryName(path_);
    fd_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd_ < 0) {
      temporary_.clear();
      refused();
    }
    if (holdTemporary(fd_, temporary_)) return;
    ::close(std::exchange(fd_, -1));
  }
}

void NewFile::refused() const {
  const int code = errno;
  const std::string size = expected_ ? fmt::format(" ({} bytes)", expected_) : "";
  ioError("cannot write {}{}: {}; {}; no part of it was left behind", path_, size, systemError(code), remedyFor(code));
}

void NewFile::write(std::string_view bytes) {
  const auto part = [&](size_t at) { return ::write(fd_, bytes.data() + at, bytes.size() - at); };
  if (!moveAll(bytes.size(), part)) refused();
  size_ += bytes.size();
  if (size_ - flushed_ < kFlushBytes) return;
  if (::fdatasync(fd_) != 0 && errno != EINVAL) refused();
  flushed_ = size_;
}

// Gives the unnamed file a name; false, with errno, when there is something of that name or it cannot be done.
bool NewFile::giveName(const std::string& name) const {
  // A chroot may have no /proc; root can link by descriptor there.
  const std::string self = fmt::format("/proc/self/fd/{}", fd_);
  if (::linkat(AT_FDCWD, self.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0) return true;
  return errno != EEXIST && ::linkat(fd_, "", AT_FDCWD, name.c_str(), AT_EMPTY_PATH) == 0;
}

// For systems that create unnamed files but cannot link them (no /proc, and not root): copies the bytes to a named
// temporary file.
void NewFile::copyToNamed() {
  const int from = fd_;
  fd_ = -1;
  std::string piece(1u << 20, '\0');
  try {
    openNamed();
    size_ = flushed_ = 0;
    for (ssize_t n; (n = ::pread(from, piece.data(), piece.size(), static_cast<off_t>(size_))) != 0;) {
      if (n < 0) refused();
      write({piece.data(), static_cast<size_t>(n)});
    }
    if (::fsync(fd_) != 0 && errno != EINVAL) refused();
  } catch (...) {
    ::close(from);
    throw;
  }
  ::close(from);
}

void NewFile::commit() {
  if (::fsync(fd_) != 0 && errno != EINVAL) refused();
  bool there = temporary_.empty() && giveName(path_);
  if (temporary_.empty() && !there) {
    const bool taken = errno == EEXIST;
    ::flock(fd_, LOCK_EX | LOCK_NB);
    if (const std::string name = temporaryName(path_); taken && giveName(name)) temporary_ = name;
    if (temporary_.empty()) copyToNamed();
  }
  if (!there && std::rename(temporary_.c_str(), path_.c_str()) != 0) refused();
  temporary_.clear();
  ::close(std::exchange(fd_, -1));
  const int folder = ::open(parentDirectory(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return;
  ::fsync(folder);  // the name itself reaches the disk
  ::close(folder);
}

}  // namespace crema
