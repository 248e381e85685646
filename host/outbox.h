// What a coordinator says to its host, given by a thread of its own: a host that does not read for a while, as it is
// stopped, its console is held or its file system hangs, keeps the coordinator from nothing.
#pragma once
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <thread>

#include "base/error.h"
#include "base/mutex.h"
#include "wire.pb.h"

namespace crema::host {

class Outbox {
 public:
  static constexpr size_t kMost = size_t{64} << 20;
  // give: called with one event after the other, and may wait as long as it likes. most: bytes of events that may wait.
  explicit Outbox(std::function<void(const wire::Event&)> give, size_t most = kMost);
  ~Outbox();  // gives no more; waits for a give that has begun

  // Does not wait. Of Progress that waits side by side only the newest is kept. Throws what give has thrown; kIo when the
  // host lets too much wait.
  void put(const wire::Event& event);
  // Until all is given: throws what give has thrown, kTimeout after `seconds`.
  void flush(double seconds);

 private:
  void giveAll();
  void check() const CREMA_REQUIRES(mutex_);

  const std::function<void(const wire::Event&)> give_;
  const size_t most_;
  Mutex mutex_;
  std::condition_variable changed_;
  std::deque<wire::Event> waiting_ CREMA_GUARDED_BY(mutex_);
  size_t bytes_ CREMA_GUARDED_BY(mutex_) = 0;
  double given_ CREMA_GUARDED_BY(mutex_);  // when: the last event, or the beginning
  bool giving_ CREMA_GUARDED_BY(mutex_) = false, ended_ CREMA_GUARDED_BY(mutex_) = false;
  std::exception_ptr failed_ CREMA_GUARDED_BY(mutex_);
  std::thread thread_;
};

// Seconds for which the end of a run waits for its host.
double hostPatience(const wire::Job& job);
// Runs body, which emits through the outbox; an error goes there as Failed before it goes on. All is given at the end, or
// dropped when the host has not taken it after `seconds`.
void reportingThrough(Outbox& outbox, double seconds, const std::function<void()>& body);

}  // namespace crema::host
