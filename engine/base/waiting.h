// Waiting on a condition variable with a deadline and an interrupt, which cannot wake it: it is looked at five times a
// second.
#pragma once
#include <algorithm>
#include <condition_variable>
#include <mutex>

#include "base/socket.h"

namespace crema {

// True when ready() holds, false at the deadline; throws what the interrupt says. `lock` is held at the call and after.
template <class Ready>
bool waitUntil(std::condition_variable& changed, std::unique_lock<std::mutex>& lock, Deadline deadline,
               const Interrupt* interrupt, Ready ready) {
  while (!ready()) {
    if (interrupt) interrupt->check();
    if (deadline.passed()) return false;
    changed.wait_for(
        lock, std::chrono::duration<double>(std::clamp(deadline.left(), 0.001, std::min(0.2, Clock::longestSleep()))));
  }
  return true;
}

// The same without a deadline: for what a host program gives, which has one of its own.
template <class Ready>
void waitUntil(std::condition_variable& changed, std::unique_lock<std::mutex>& lock, const Interrupt* interrupt,
               Ready ready) {
  while (!waitUntil(changed, lock, Deadline::after(3600), interrupt, ready)) {
  }
}

}  // namespace crema
