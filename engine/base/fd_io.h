// Reading and writing descriptors to the end: system calls move as much as they like, and signals end them early.
#pragma once
#include <unistd.h>

#include <cerrno>
#include <string>

namespace crema {

// Calls part(done), which moves bytes from offset `done` on as ::read and ::write do, until `bytes` are moved. false
// with errno for an error; errno is 0 at the end of the file.
template <class Part>
[[nodiscard]] bool moveAll(size_t bytes, Part part) {
  for (size_t done = 0; done < bytes;) {
    const ssize_t n = part(done);
    if (n < 0 && errno == EINTR) continue;
    if (n == 0) errno = 0;
    if (n <= 0) return false;
    done += static_cast<size_t>(n);
  }
  return true;
}

// Appends all that comes until the end; false with errno for an error.
[[nodiscard]] inline bool readToEnd(int fd, std::string* to) {
  char buffer[1 << 16];
  for (ssize_t n; (n = ::read(fd, buffer, sizeof buffer)) != 0;) {
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    to->append(buffer, static_cast<size_t>(n));
  }
  return true;
}

}  // namespace crema
