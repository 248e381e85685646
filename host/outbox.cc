#include "host/outbox.h"

#include <utility>

#include "base/waiting.h"
#include "cluster/patience.h"
#include "host/job_io.h"

namespace crema::host {

Outbox::Outbox(std::function<void(const wire::Event&)> give, size_t most)
    : give_(std::move(give)), most_(most), given_(monotonicSeconds()), thread_([this] { giveAll(); }) {}

Outbox::~Outbox() {
  {
    const MutexLock lock(mutex_);
    ended_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void Outbox::check() const {
  if (failed_) std::rethrow_exception(failed_);
}

void Outbox::put(const wire::Event& event) {
  const MutexLock lock(mutex_);
  check();
  if (!waiting_.empty() && waiting_.back().has_progress() && event.has_progress()) {
    bytes_ -= waiting_.back().ByteSizeLong();
    waiting_.pop_back();
  }
  bytes_ += event.ByteSizeLong();
  waiting_.push_back(event);
  if (bytes_ > most_)
    ioError(
        "the program that started this process has read nothing for {:.0f} s, and {} events wait for it: is it "
        "stopped, or what it writes to?",
        monotonicSeconds() - given_, waiting_.size());
  changed_.notify_all();
}

void Outbox::flush(double seconds) {
  MutexLock lock(mutex_);
  const bool all = waitUntil(changed_, lock, Deadline::after(seconds), nullptr,
                             [&]() CREMA_REQUIRES(mutex_) { return failed_ || (waiting_.empty() && !giving_); });
  check();
  if (!all)
    throw Error(ErrorKind::kTimeout,
                fmt::format("the run has ended, and the program that started this process has read nothing for {:.0f} "
                            "s: it does not learn of {} events. Is it stopped, or what it writes to?",
                            monotonicSeconds() - given_, waiting_.size() + (giving_ ? 1 : 0)));
}

void Outbox::giveAll() {
  MutexLock lock(mutex_);
  for (;;) {
    // Without a deadline: its owner's to end.
    changed_.wait(lock.standard(), [&]() CREMA_REQUIRES(mutex_) { return ended_ || !waiting_.empty(); });
    if (ended_) return;
    const wire::Event event = std::move(waiting_.front());
    waiting_.pop_front();
    bytes_ -= event.ByteSizeLong();
    giving_ = true;
    lock.standard().unlock();
    std::exception_ptr failed;
    try {
      give_(event);
    } catch (...) {
      failed = std::current_exception();
    }
    lock.standard().lock();
    giving_ = false, failed_ = failed, given_ = monotonicSeconds();
    changed_.notify_all();
    if (failed) return;
  }
}

double hostPatience(const wire::Job& job) { return cluster::patience::kHostTimeouts * job.step_timeout(); }

void reportingThrough(Outbox& outbox, double seconds, const std::function<void()>& body) {
  try {
    reportingFailure([&outbox](const wire::Event& event) { outbox.put(event); }, body);
  } catch (...) {
    try {
      outbox.flush(seconds);
    } catch (const std::exception&) {  // what body threw says more
    }
    throw;
  }
  outbox.flush(seconds);
}

}  // namespace crema::host
