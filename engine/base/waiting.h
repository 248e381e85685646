// Waiting on a condition variable with a deadline and an interrupt. An interrupt cannot wake a condition variable and
// is checked five times a second.
#pragma once
#include <algorithm>
#include <condition_variable>

#include "base/mutex.h"
#include "base/socket.h"

namespace crema {

// True when ready() holds, false at the deadline; throws the interrupt's reason. `lock` is held at the call and after.
// Unchecked: the analysis cannot know that `lock` holds the mutex that ready() requires.
template <class Ready>
CREMA_UNCHECKED bool waitUntil(std::condition_variable& changed, MutexLock& lock, Deadline deadline,
                               const Interrupt* interrupt, Ready ready) {
  while (!ready()) {
    if (interrupt) interrupt->check();
    if (deadline.passed()) return false;
    changed.wait_for(lock.standard(), std::chrono::duration<double>(
                                          std::clamp(deadline.left(), 0.001, std::min(0.2, Clock::longestSleep()))));
  }
  return true;
}

// The same without a deadline, for what has timeouts elsewhere: input of the host program, or of authenticated peers.
template <class Ready>
void waitUntil(std::condition_variable& changed, MutexLock& lock, const Interrupt* interrupt, Ready ready) {
  while (!waitUntil(changed, lock, Deadline::after(3600), interrupt, ready)) {
  }
}

}  // namespace crema
