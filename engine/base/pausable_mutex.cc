#include "base/pausable_mutex.h"

#include "base/waiting.h"

namespace crema {

void PausableMutex::take() {
  holder_ = std::this_thread::get_id();
  ++depth_;
}

// Without a deadline, as any mutex: what is held meanwhile is a computation of the same process.
void PausableMutex::lock() {
  MutexLock lock(mutex_);
  if (!mine()) waitUntil(changed_, lock, nullptr, [this]() CREMA_REQUIRES(mutex_) { return free(); });
  take();
}

bool PausableMutex::try_lock() {
  const MutexLock lock(mutex_);
  if (!mine() && !free()) return false;
  take();
  return true;
}

void PausableMutex::unlock() {
  const MutexLock lock(mutex_);
  if (--depth_ == 0) changed_.notify_all();
}

bool PausableMutex::lockBriefly(Deadline deadline) {
  MutexLock lock(mutex_);
  if (mine()) return take(), true;
  ++waiting_;
  const bool free =
      waitUntil(changed_, lock, deadline, nullptr, [this]() CREMA_REQUIRES(mutex_) { return depth_ == 0; });
  --waiting_, ++served_;
  if (free) take();
  changed_.notify_all();  // pause() counts those that have given up, too
  return free;
}

bool PausableMutex::pause() {
  MutexLock lock(mutex_);
  if (depth_ != 1) return false;
  const int64_t until = served_ + waiting_;  // not those that come later: they might never end
  pausing_ = std::this_thread::get_id();
  ++pauses_;
  depth_ = 0;
  changed_.notify_all();
  waitUntil(changed_, lock, nullptr, [&]() CREMA_REQUIRES(mutex_) { return depth_ == 0 && served_ >= until; });
  return true;
}

void PausableMutex::resume() {
  MutexLock lock(mutex_);
  waitUntil(changed_, lock, nullptr, [this]() CREMA_REQUIRES(mutex_) { return depth_ == 0; });
  --pauses_;
  take();
}

}  // namespace crema
