// A file's bytes in memory, read-only, without copying; released at the end. The file must not shrink meanwhile.
#pragma once
#include <atomic>
#include <cstddef>
#include <string>
#include <string_view>

namespace crema {

// Pages of a mapped file that a process has touched count as its memory, up to the whole file, and a container's limit
// ends it. Every 64 MiB it gives the claim back: the pages stay in the kernel's cache.
class PageClaim {
 public:
  void add(size_t bytes, void* at, size_t size);

 private:
  std::atomic<size_t> bytes_{0};
};

class [[nodiscard]] MappedFile {
 public:
  explicit MappedFile(const std::string& path);  // ioError names the path and why
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  void touched(size_t bytes) const { claim_.add(bytes, data_, size_); }  // says that so many bytes are read
  std::string_view bytes() const { return {static_cast<const char*>(data_), size_}; }
  // Copies a part of bytes() by the file, so that none of its pages counts as this process's. ioError.
  void read(std::string_view part, void* to) const;

 private:
  const std::string path_;
  int fd_ = -1;
  void* data_ = nullptr;
  size_t size_ = 0;
  mutable PageClaim claim_;
};

}  // namespace crema
