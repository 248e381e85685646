#include "base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/error.h"
#include "base/fd_io.h"

namespace crema {

MappedFile::MappedFile(const std::string& path) : path_(path), fd_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
  if (fd_ < 0) ioError("cannot open {}: {}; check the path and the permissions", path, systemError(errno));
  struct stat about {};
  if (::fstat(fd_, &about) == 0 && about.st_size > 0) {
    size_ = static_cast<size_t>(about.st_size);
    data_ = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, fd_, 0);
  }
  if (data_ == MAP_FAILED) {
    const int code = errno;
    ::close(fd_);
    ioError("cannot map the {} bytes of {} into memory: {}; is there an address-space limit (ulimit -v)?", size_, path,
            systemError(code));
  }
}

MappedFile::~MappedFile() {
  if (data_) ::munmap(data_, size_);
  ::close(fd_);
}

void MappedFile::read(std::string_view part, void* to) const {
  const off_t from = part.data() - static_cast<const char*>(data_);
  const auto some = [&](size_t at) {
    return ::pread(fd_, static_cast<char*>(to) + at, part.size() - at, from + static_cast<off_t>(at));
  };
  if (!moveAll(part.size(), some))
    ioError("cannot read {} bytes of {}: {}", part.size(), path_,
            errno != 0 ? systemError(errno) : "it has become shorter meanwhile");
}

void PageClaim::add(size_t bytes, void* at, size_t size) {
  constexpr size_t kMost = size_t{64} << 20, kPage = 4096;
  if (bytes_.fetch_add(bytes + kPage) < kMost) return;  // pages are counted whole
  bytes_ = 0;
  ::madvise(at, size, MADV_DONTNEED);
}

}  // namespace crema
