#include "base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/error.h"

namespace crema {

MappedFile::MappedFile(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) ioError("cannot open {}: {}; check the path and the permissions", path, systemError(errno));
  struct stat about {};
  if (::fstat(fd, &about) == 0 && about.st_size > 0) {
    size_ = static_cast<size_t>(about.st_size);
    data_ = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, fd, 0);
  }
  const int code = errno;
  ::close(fd);
  if (data_ == MAP_FAILED) {
    data_ = nullptr;
    ioError("cannot map the {} bytes of {} into memory: {}; is there an address-space limit (ulimit -v)?", size_, path,
            systemError(code));
  }
}

MappedFile::~MappedFile() {
  if (data_) ::munmap(data_, size_);
}

void PageClaim::add(size_t bytes, void* at, size_t size) {
  constexpr size_t kMost = size_t{64} << 20, kPage = 4096;
  if (bytes_.fetch_add(bytes + kPage) < kMost) return;  // pages are counted whole
  bytes_ = 0;
  ::madvise(at, size, MADV_DONTNEED);
}

}  // namespace crema
