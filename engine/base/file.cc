#include "base/file.h"

#include <fcntl.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "base/error.h"
#include "base/new_file.h"

namespace crema {
namespace {

class Descriptor {
 public:
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
  while (!bytes.empty()) {
    const ssize_t n = ::write(out.get(), bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return failure();
    bytes.remove_prefix(static_cast<size_t>(n));
  }
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
  char buffer[1 << 16];
  for (;;) {
    const ssize_t n = ::read(in.get(), buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) ioError("cannot read {}: {}; {}", path, systemError(errno), remedyFor(errno));
    if (n == 0) return bytes;
    bytes.append(buffer, static_cast<size_t>(n));
  }
}

namespace {

// A device or a pipe (/dev/null) is written, never replaced.
void writeThrough(const std::string& path, std::string_view bytes) {
  if (isDirectory(path)) ioError("cannot write {}: it is a folder; name a file in it", path);
  Descriptor out(path, O_WRONLY);
  std::string failed = out.get() < 0 ? failure() : writeAll(out, bytes);
  if (failed.empty() && out.close() != 0) failed = failure();
  if (!failed.empty()) ioError("cannot write {} ({} bytes): {}", path, bytes.size(), failed);
}

}  // namespace

void writeFileAtomically(const std::string& name, std::string_view bytes, bool unnamed) {
  std::error_code missing;
  const auto real = std::filesystem::canonical(name, missing);
  const std::string path = missing ? name : real.string();  // a link stays a link
  if (!missing && !std::filesystem::is_regular_file(real)) return writeThrough(path, bytes);
  NewFile file(path, bytes.size(), unnamed);
  file.write(bytes);
  file.commit();
}

bool fileExists(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

bool isDirectory(const std::string& path) {
  std::error_code ignored;
  return std::filesystem::is_directory(path, ignored);
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

std::string sha256Hex(std::string_view bytes) {
  unsigned char hash[crypto_hash_sha256_BYTES];
  crypto_hash_sha256(hash, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  std::string text;
  for (unsigned char c : hash) text += fmt::format("{:02x}", c);
  return text;
}

}  // namespace crema
