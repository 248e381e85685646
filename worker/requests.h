// What the signals and the host of this process ask for, and when a worker that is asked to end does so alone. Polled by the
// thread that trains and by the one that sends heartbeats, so that a stop is heard of while the first one waits.
#pragma once
#include <algorithm>
#include <atomic>
#include <functional>
#include <utility>

#include "base/clock.h"
#include "base/mutex.h"
#include "cluster/patience.h"
#include "cluster/session.h"
#include "train/request.h"

namespace crema::worker {

class Requests {
 public:
  explicit Requests(const std::function<train::Request()>& source) : source_(source) {}
  // What has come since the last call. For the thread that trains.
  train::Request take() {
    const MutexLock lock(mutex_);
    poll();
    return std::exchange(come_, train::Request::kNone);
  }
  train::Request all() {  // so far, whether taken or not
    const MutexLock lock(mutex_);
    poll();
    return all_;
  }

  void waits() { since_ = monotonicSeconds(); }  // for others: from now on, a generation or the wait for one
  // Between generations: whether the time is over in which the next one may begin, and all end behind a step of it.
  bool endsBetween() { return std::min(toldFor(), monotonicSeconds() - since_) >= cluster::patience::kEndsAlone; }
  // Inside of one, asked beside heartbeats, by their thread: whether nobody gets any further. As long as somebody does,
  // all end behind the step.
  bool endsInside(const cluster::Session& session) {
    const double now = monotonicSeconds();
    const std::pair<int64_t, int64_t> moved{session.passes, session.transferred};
    if (!session.waiting || moved != moved_) moved_ = moved, movedAt_ = now;
    const double last = std::max({movedAt_, since_.load(), session.someoneAdvanced.load()});
    return toldFor() >= cluster::patience::kEndsAlone && now - last >= cluster::patience::kStill;
  }

 private:
  void poll() CREMA_REQUIRES(mutex_) {
    const train::Request r = source_();
    come_ = come_ | r, all_ = all_ | r;
    if (train::wantsStop(r) && toldAt_ < 0) toldAt_ = monotonicSeconds();
  }
  double toldFor() {  // seconds since the first stop; -1: none has come
    const MutexLock lock(mutex_);
    poll();
    return toldAt_ < 0 ? -1 : monotonicSeconds() - toldAt_;
  }

  const std::function<train::Request()>& source_;
  std::atomic<double> since_{0};
  std::pair<int64_t, int64_t> moved_{0, 0};  // passes and bytes of this worker,
  double movedAt_ = 0;                       // and when they changed last, or it did not wait
  Mutex mutex_;
  train::Request come_ CREMA_GUARDED_BY(mutex_) = train::Request::kNone;
  train::Request all_ CREMA_GUARDED_BY(mutex_) = train::Request::kNone;
  double toldAt_ CREMA_GUARDED_BY(mutex_) = -1;
};

}  // namespace crema::worker
