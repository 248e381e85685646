#include "base/temporary.h"

#include <fcntl.h>
#include <sodium.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <cstdio>
#include <ctime>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"

namespace crema {
namespace {

constexpr size_t kRandomDigits = 8;
constexpr int kHour = 3600;

std::string hostName() {
  char host[256] = "";
  ::gethostname(host, sizeof host - 1);
  return host;
}

// The host in the name of a temporary file or folder; "" when it is the name of none.
std::string hostOf(const std::string& name) {
  size_t at = std::string::npos;
  for (const std::string kind : {".tmp-", ".part-"})
    if (const size_t found = name.rfind(kind); found != std::string::npos) at = found + kind.size();
  if (at == std::string::npos || name.size() < at + kRandomDigits + 2) return "";
  const size_t dash = name.size() - kRandomDigits - 1;
  for (size_t i = dash + 1; i < name.size(); ++i)
    if (!std::isxdigit(static_cast<unsigned char>(name[i]))) return "";
  return name[dash] == '-' ? name.substr(at, dash - at) : "";
}

// Nobody holds it: the lock is taken, and kept until the caller closes what it gets. -1: it is in use, or cannot be
// known.
int openAbandoned(const std::string& path, const std::string& host) {
  int fd = ::open(path.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);  // some locks want to write
  if (fd < 0) fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return -1;
  struct stat about {};
  const bool abandoned = ::flock(fd, LOCK_EX | LOCK_NB) == 0 && ::fstat(fd, &about) == 0 &&
                         (S_ISREG(about.st_mode) || S_ISDIR(about.st_mode)) &&
                         (host == hostName() || std::time(nullptr) - about.st_mtime > kHour);
  if (!abandoned) ::close(fd), fd = -1;
  return fd;
}

}  // namespace

std::string temporaryName(const std::string& path, const char* kind) {
  return fmt::format("{}.{}-{}-{:08x}", path, kind, hostName(), randombytes_random());
}

bool holdTemporary(int fd, const std::string& name) {
  struct stat mine {
  }, named{};
  const bool taken = ::flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  return !taken && ::fstat(fd, &mine) == 0 && ::lstat(name.c_str(), &named) == 0 && mine.st_ino == named.st_ino &&
         mine.st_dev == named.st_dev;
}

void clearLeftovers(const std::string& path) {
  const std::string stem = path.substr(path.rfind('/') + 1), folder = parentDirectory(path);
  std::error_code error;
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string(), host = hostOf(name);
    if (host.empty() || !name.starts_with(stem)) continue;
    const std::string found = joinPath(folder, name);
    const int fd = openAbandoned(found, host);
    if (fd < 0) continue;
    std::error_code failed;
    if (std::filesystem::remove_all(found, failed) > 0 && !failed)
      LOG_INFO("removed {}, which a process that was killed left behind", found);
    ::close(fd);
  }
}

PartFolder::PartFolder(const std::string& path) : path_(path) {
  clearLeftovers(path);
  do {
    if (fd_ >= 0) ::close(fd_);
    name_ = temporaryName(path, "part");
    if (::mkdir(name_.c_str(), 0755) != 0)
      ioError("cannot make the folder {}: {}; make its parent folder first, or choose another path", name_,
              systemError(errno));
    fd_ = ::open(name_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  } while (fd_ >= 0 && !holdTemporary(fd_, name_));
}

PartFolder::~PartFolder() {
  std::error_code ignored;
  if (!name_.empty()) std::filesystem::remove_all(name_, ignored);
  if (fd_ >= 0) ::close(fd_);
}

void PartFolder::finish(const char* what) {
  if (std::rename(name_.c_str(), path_.c_str()) != 0)
    ioError("cannot move the finished {} to {}: {}; remove what is there", what, path_, systemError(errno));
  name_.clear();
}

}  // namespace crema
