// An open file that is closed with its last owner.
#pragma once
#include <unistd.h>

#include <string_view>
#include <utility>

namespace crema::node {

class [[nodiscard]] Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }
  bool open() const { return fd_ >= 0; }

 private:
  int fd_;
};

// Memory without a name that holds these bytes, read from its start. kIo, with what was to be held, when there is none.
Descriptor memoryHolding(std::string_view bytes, const char* what);

}  // namespace crema::node
