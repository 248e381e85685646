// A recursive mutex for long computations, whose holder lets brief accesses of other threads in where it pauses.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <thread>

#include "base/deadline.h"
#include "base/mutex.h"

namespace crema {

// lock(), try_lock() and unlock() are those of a standard recursive mutex, so that standard locks take it.
class PausableMutex {
 public:
  void lock();
  bool try_lock();
  void unlock();
  // As lock(), for an access of microseconds, which a pause is enough for; false at the deadline.
  [[nodiscard]] bool lockBriefly(Deadline deadline);

  // Made by the thread that holds the mutex: while it lives, brief accesses of other threads come in, those first that
  // waited already, and the same thread may lock as before; lock() of other threads still waits. Does nothing within a
  // second lock() of that thread. Unlocking and locking again would not do: mostly the same thread gets the mutex.
  class Pause {
   public:
    explicit Pause(PausableMutex& mutex) : mutex_(mutex), paused_(mutex.pause()) {}
    ~Pause() {
      if (paused_) mutex_.resume();
    }
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;

   private:
    PausableMutex& mutex_;
    const bool paused_;
  };

 private:
  bool pause();
  void resume();
  bool mine() const CREMA_REQUIRES(mutex_) { return depth_ > 0 && holder_ == std::this_thread::get_id(); }
  bool free() const CREMA_REQUIRES(mutex_) {
    return depth_ == 0 && (pauses_ == 0 || pausing_ == std::this_thread::get_id());
  }
  void take() CREMA_REQUIRES(mutex_);

  Mutex mutex_;
  std::condition_variable changed_;
  std::thread::id holder_ CREMA_GUARDED_BY(mutex_), pausing_ CREMA_GUARDED_BY(mutex_);
  int depth_ CREMA_GUARDED_BY(mutex_) = 0, pauses_ CREMA_GUARDED_BY(mutex_) = 0;
  int64_t waiting_ CREMA_GUARDED_BY(mutex_) = 0, served_ CREMA_GUARDED_BY(mutex_) = 0;
};

}  // namespace crema
