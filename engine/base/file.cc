#include "base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "base/error.h"
#include "base/fd_io.h"
#include "base/new_file.h"

namespace crema {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const std::string& path, int flags) : fd_(::open(path.c_str(), flags | O_CLOEXEC, 0644)) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  int get() const { return fd_; }
  int close() {
    const int r = ::close(fd_);
    fd_ = -1;
    return r;
  }

 private:
  int fd_;
};

std::string failure() { return fmt::format("{}; {}", systemError(errno), remedyFor(errno)); }

// Empty when all bytes are on disk, else what failed.
std::string writeAll(const Descriptor& out, std::string_view bytes) {
  const auto part = [&](size_t at) { return ::write(out.get(), bytes.data() + at, bytes.size() - at); };
  if (!moveAll(bytes.size(), part)) return failure();
  return ::fsync(out.get()) != 0 && errno != EINVAL ? failure() : "";
}

}  // namespace

std::string remedyFor(int code) {
  switch (code) {
    case ENOENT:
      return "check the path";
    case EACCES:
    case EPERM:
      return "check the permissions";
    case ENOSPC:
    case EDQUOT:
      return "free some space or write to another disk";
    case EFBIG:
      return "raise the limit of file sizes (ulimit -f)";
    case EROFS:
      return "write to another folder";
    default:
      return "check the disk";
  }
}

std::string readFile(const std::string& path) {
  Descriptor in(path, O_RDONLY);
  if (in.get() < 0) ioError("cannot open {}: {}; {}", path, systemError(errno), remedyFor(errno));
  struct stat about {};
  if (::fstat(in.get(), &about) == 0 && S_ISDIR(about.st_mode))
    ioError("cannot read {}: it is a folder; name a file", path);
  std::string bytes;
  bytes.reserve(static_cast<size_t>(about.st_size));
  if (!readToEnd(in.get(), &bytes)) ioError("cannot read {}: {}; {}", path, systemError(errno), remedyFor(errno));
  return bytes;
}

namespace {

// The path behind symbolic links, whether a file exists there or not: links are not replaced. Links in /proc are not
// followed, as their targets may be unnamed files.
std::string followLinks(const std::string& name) {
  std::filesystem::path path = name;
  std::error_code none;
  for (int links = 0; links < 40; ++links) {
    if (const auto folder = std::filesystem::canonical(parentDirectory(path), none); !none)
      path = folder / path.filename();
    if (path.string().starts_with("/proc/") || !std::filesystem::is_symlink(path, none)) return path.string();
    path = path.parent_path() / std::filesystem::read_symlink(path);
  }
  ioError("cannot write {}: its links lead to each other; remove one", name);
}

// A descriptor that this process has open (/dev/stdout) is written at its present offset: opened by name, a file would
// be overwritten from its beginning.
int openThrough(const std::string& path) {
  const std::string own = fmt::format("/proc/{}/fd/", ::getpid());
  if (path.starts_with(own)) return ::fcntl(std::atoi(path.c_str() + own.size()), F_DUPFD_CLOEXEC, 3);
  return ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
}

// A device or a pipe (/dev/null) is written, never replaced.
void writeThrough(const std::string& path, std::string_view bytes) {
  refuseFolder(path);
  std::fflush(stdout);
  Descriptor out(openThrough(path));
  std::string failed = out.get() < 0 ? failure() : writeAll(out, bytes);
  if (failed.empty() && out.close() != 0) failed = failure();
  if (!failed.empty()) ioError("cannot write {} ({} bytes): {}", path, bytes.size(), failed);
}

// Whether what stands at `path` is to be written itself, and not replaced.
bool isWrittenThrough(const std::string& path) {
  std::error_code missing;
  const auto what = std::filesystem::status(path, missing);
  const bool open = path.starts_with("/proc/");  // /dev/stdout and its like: what this process has open already
  return open || (std::filesystem::exists(what) && !std::filesystem::is_regular_file(what));
}

}  // namespace

void writeFileAtomically(const std::string& name, uint64_t size, const std::function<void(const WriteSome&)>& produce,
                         bool unnamed) {
  const std::string path = followLinks(name);
  if (isWrittenThrough(path)) {
    std::string all;
    produce([&](std::string_view piece) { all.append(piece); });
    return writeThrough(path, all);
  }
  NewFile file(path, size, unnamed);
  produce([&](std::string_view piece) { file.write(piece); });
  file.commit();
}

void writeFileAtomically(const std::string& name, std::string_view bytes, bool unnamed) {
  writeFileAtomically(
      name, bytes.size(), [&](const WriteSome& write) { write(bytes); }, unnamed);
}

bool fileExists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

bool isDirectory(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored);
}

void refuseFolder(const std::string& path) {
  if (isDirectory(path)) ioError("cannot write {}: it is a folder; name a file in it", path);
}

std::string parentDirectory(const std::string& path) {
  const std::string parent = std::filesystem::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

std::string joinPath(const std::string& folder, const std::string& name) {
  return folder.empty() ? name : (std::filesystem::path(folder) / name).string();
}

std::string resolvePath(const std::string& path, const std::string& folder) {
  if (path.empty() || folder.empty() || fileExists(path)) return path;
  const std::string beside = joinPath(folder, path);
  return fileExists(beside) ? beside : path;
}

std::string localPath(const std::string& uri) {
  if (uri.rfind("file:", 0) != 0) return uri;
  const std::string path = uri.substr(5);
  const size_t slashes = std::min(path.find_first_not_of('/'), path.size());
  if (slashes == 2) return path.substr(std::min(path.find('/', 2), path.size()));  // file://host/path
  return path.substr(slashes > 1 ? slashes - 1 : 0);
}

void checkWritable(const std::string& path) {
  const std::string probe = fmt::format("{}.probe-{}", path, ::getpid());
  Descriptor out(probe, O_WRONLY | O_CREAT | O_TRUNC);
  if (out.get() < 0) {
    const int code = errno;
    ioError("cannot write to '{}': {}; {}", path, systemError(code),
            code == ENOENT ? "make the folder first" : remedyFor(code));
  }
  ::unlink(probe.c_str());
}

}  // namespace crema
