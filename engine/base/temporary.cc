#include "base/temporary.h"

#include <fcntl.h>
#include <sodium.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <set>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mutex.h"

namespace crema {
namespace {

constexpr std::string_view kMark = ".crema-tmp-";
constexpr size_t kRandomDigits = 16;
constexpr int kHour = 3600;

std::string hostName() {
  char host[256] = "";
  ::gethostname(host, sizeof host - 1);
  return host;
}

struct Temporary {
  std::string stem, host;  // empty when the name is none of a temporary file or folder
};

Temporary parseName(const std::string& name) {
  const size_t mark = name.rfind(kMark), at = mark + kMark.size();
  if (mark == std::string::npos || name.size() < at + kRandomDigits + 2) return {};
  const size_t dash = name.size() - kRandomDigits - 1;
  const bool random = name.find_first_not_of("0123456789abcdef", dash + 1) == std::string::npos;
  return name[dash] == '-' && random ? Temporary{name.substr(0, mark), name.substr(at, dash - at)} : Temporary{};
}

// Takes the lock of a leftover; the lock lasts until the caller closes the descriptor. -1: a writer holds it, or this
// cannot be found out.
int openAbandoned(const std::string& path, const std::string& host) {
  // File systems such as NFS lock only what is open for writing.
  int fd = ::open(path.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return -1;
  struct stat about {};
  const bool abandoned =
      ::flock(fd, LOCK_EX | LOCK_NB) == 0 && ::fstat(fd, &about) == 0 &&
      (S_ISREG(about.st_mode) || S_ISDIR(about.st_mode)) &&
      (host == hostName() || (S_ISREG(about.st_mode) && std::time(nullptr) - about.st_mtime > kHour));
  if (!abandoned) ::close(fd), fd = -1;
  return fd;
}

// The unfinished folders of this process; the mutex stays locked once a signal has come.
struct Parts {
  Mutex mutex;
  std::set<std::string> names CREMA_GUARDED_BY(mutex);
};

Parts& parts() {
  static auto* all = new Parts;  // never destroyed: a signal may come while the program ends
  return *all;
}

// Other threads may still be writing into the folder: files that they add meanwhile are removed too.
void removeFilling(const std::string& folder) {
  std::error_code failed;
  for (int tries = 0; tries < 100 && fileExists(folder); ++tries) std::filesystem::remove_all(folder, failed);
}

[[noreturn]] void endBySignal(int number) {
  sigset_t only;
  sigemptyset(&only), sigaddset(&only, number);
  ::signal(number, SIG_DFL);
  ::raise(number);
  ::pthread_sigmask(SIG_UNBLOCK, &only, nullptr);
  ::_exit(128 + number);
}

}  // namespace

void clearOnSignals() {
  sigset_t wanted;
  sigemptyset(&wanted);
  for (const int number : {SIGINT, SIGTERM}) {
    struct sigaction now {};
    if (::sigaction(number, nullptr, &now) == 0 && now.sa_handler != SIG_IGN) sigaddset(&wanted, number);
  }
  ::pthread_sigmask(SIG_BLOCK, &wanted, nullptr);
  std::thread([wanted] {
    int number = 0;
    while (::sigwait(&wanted, &number) != 0) {
    }
    parts().mutex.lock();
    for (const std::string& name : parts().names) removeFilling(name);
    endBySignal(number);
  }).detach();
}

std::string temporaryName(const std::string& path) {
  return fmt::format("{}{}{}-{:08x}{:08x}", path, kMark, hostName(), randombytes_random(), randombytes_random());
}

bool holdTemporary(int fd, const std::string& name) {
  struct stat mine {
  }, named{};
  const bool taken = ::flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  return !taken && ::fstat(fd, &mine) == 0 && ::lstat(name.c_str(), &named) == 0 && mine.st_ino == named.st_ino &&
         mine.st_dev == named.st_dev;
}

void clearLeftovers(const std::string& path, const std::function<bool(std::string_view rest)>& ours) {
  const std::string stem = path.substr(path.rfind('/') + 1), folder = parentDirectory(path);
  std::error_code error;
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    const Temporary t = parseName(name);
    if (t.host.empty() || !t.stem.starts_with(stem)) continue;
    const std::string_view rest = std::string_view(t.stem).substr(stem.size());
    if (ours ? !ours(rest) : !rest.empty()) continue;
    const std::string found = joinPath(folder, name);
    const int fd = openAbandoned(found, t.host);
    if (fd < 0) continue;
    std::error_code failed;
    if (std::filesystem::remove_all(found, failed) > 0 && !failed)
      LOG_INFO("removed {}, which a process that was killed left behind", found);
    ::close(fd);
  }
}

PartFolder::PartFolder(const std::string& path) : path_(path) {
  while (path_.size() > 1 && path_.back() == '/') path_.pop_back();
  std::error_code none;
  if (fileExists(path_) && !(isDirectory(path_) && std::filesystem::is_empty(path_, none)))
    ioError("there is something at {} already; remove it or choose another path", path_);
  clearLeftovers(path_);
  const MutexLock lock(parts().mutex);
  do {
    if (fd_ >= 0) ::close(fd_);
    name_ = temporaryName(path_);
    if (::mkdir(name_.c_str(), 0755) != 0) {
      const int code = errno;
      ioError("cannot make the folder {}: {}; {}, or choose another path", path_, systemError(code),
              code == ENOENT ? "make its parent folder first" : remedyFor(code));
    }
    fd_ = ::open(name_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  } while (fd_ >= 0 && !holdTemporary(fd_, name_));
  parts().names.insert(name_);
}

PartFolder::~PartFolder() {
  std::error_code ignored;
  if (!name_.empty()) {
    const MutexLock lock(parts().mutex);
    std::filesystem::remove_all(name_, ignored);
    parts().names.erase(name_);
  }
  if (fd_ >= 0) ::close(fd_);
}

void PartFolder::finish(const char* what) {
  const MutexLock lock(parts().mutex);
  const std::string made = std::exchange(name_, "");
  parts().names.erase(made);
  if (std::rename(made.c_str(), path_.c_str()) == 0) return;
  const int code = errno;
  const std::string kept = made.substr(0, made.rfind(kMark)) + ".whole" + made.substr(made.rfind('-'));
  ioError("cannot move the finished {} to {}: {}; it is kept at {}: move it there yourself", what, path_,
          systemError(code), std::rename(made.c_str(), kept.c_str()) == 0 ? kept : made);
}

}  // namespace crema
