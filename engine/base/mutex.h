// A mutex and its lock as clang's thread-safety analysis knows them: scripts/check_threads proves at each compile that
// a member that names its mutex is touched under it alone. To GCC the attributes are nothing.
#pragma once
#include <condition_variable>
#include <mutex>

#ifdef __clang__
#define CREMA_THREADS(attribute) __attribute__((attribute))
#else
#define CREMA_THREADS(attribute)
#endif
#define CREMA_GUARDED_BY(mutex) CREMA_THREADS(guarded_by(mutex))         // of a member
#define CREMA_REQUIRES(mutex) CREMA_THREADS(requires_capability(mutex))  // of a function: the caller holds it
#define CREMA_UNCHECKED CREMA_THREADS(no_thread_safety_analysis)         // of a function; a comment says why

namespace crema {

class CREMA_THREADS(capability("mutex")) Mutex {
 public:
  void lock() CREMA_THREADS(acquire_capability()) { mutex_.lock(); }
  void unlock() CREMA_THREADS(release_capability()) { mutex_.unlock(); }

 private:
  friend class MutexLock;
  std::mutex mutex_;
};

// Holds the mutex until its end; unlock() gives it back before.
class [[nodiscard]] CREMA_THREADS(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) CREMA_THREADS(acquire_capability(mutex)) : lock_(mutex.mutex_) {}
  ~MutexLock() CREMA_THREADS(release_capability()) {}
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;
  void unlock() CREMA_THREADS(release_capability()) { lock_.unlock(); }
  std::unique_lock<std::mutex>& standard() { return lock_; }  // for a condition variable, which holds it again after

 private:
  std::unique_lock<std::mutex> lock_;
};

}  // namespace crema
