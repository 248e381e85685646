#include "base/interrupt.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <utility>

#include "base/deadline.h"

namespace crema {

Interrupt::Interrupt() : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (fd_ < 0) ioError("cannot make an eventfd: {}; raise the limit of open files (ulimit -n)", systemError(errno));
}
Interrupt::Interrupt(Interrupt& parent) : Interrupt() {
  parent_ = &parent;
  const MutexLock lock(parent.mutex_);
  parent.children_.insert(this);
  if (parent.why_) raise(*parent.why_);
}
Interrupt::~Interrupt() {
  if (parent_) {
    const MutexLock lock(parent_->mutex_);
    parent_->children_.erase(this);
  }
  ::close(fd_);
}

void Interrupt::raise(Error why) {
  const MutexLock lock(mutex_);
  if (why_) return;
  why_ = std::make_unique<Error>(std::move(why));
  raised_.store(true, std::memory_order_release);
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t n = ::write(fd_, &one, sizeof one);
  for (Interrupt* child : children_) child->raise(*why_);
}

void Interrupt::check() const {
  if (!raised()) return;
  const MutexLock lock(mutex_);
  throw *why_;
}

void pauseFor(double seconds, const Interrupt* interrupt) {
  const Deadline end = Deadline::after(seconds);
  do {
    pollfd p{interrupt ? interrupt->descriptor() : -1, POLLIN, 0};
    ::poll(&p, 1, end.pollMillis());
    if (interrupt) interrupt->check();
  } while (!end.passed());
}

}  // namespace crema
