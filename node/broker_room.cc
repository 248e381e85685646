// Room in a node: who gets how much of it, and what holds it.
#include <algorithm>

#include "base/clock.h"
#include "node/broker.h"

namespace crema::node {
namespace {

constexpr uint64_t kReserve = 8;  // of the budget, this part more for a queue that the program waits for
constexpr double kJustNow = 2;    // seconds: who asks a queue again and again waits for it

}  // namespace

bool Broker::hasRoom(const Queue& queue, uint64_t bytes) const {
  if (held_ == 0 || held_ + bytes <= budget_) return true;
  if (queue.waiting == 0 || !queue.items.empty()) return false;
  uint64_t used = 0;
  for (const auto& [name, one] : queues_) used += one.used;
  if (held_ <= used) return true;
  if (held_ == queue.held) return false;
  return queue.held == 0 || queue.held + bytes <= budget_ / kReserve;
}

bool Broker::waitForRoom(MutexLock& lock, Queue& queue, uint64_t bytes, const Wait& wait) {
  const auto place = queue.line.emplace(queue.line.end());
  const auto served = [&]() CREMA_REQUIRES(mutex_) {
    return noMoreRows() || (place == queue.line.begin() && hasRoom(queue, bytes));
  };
  return waitFor(lock, wait, served, [&]() CREMA_REQUIRES(mutex_) {
    queue.line.erase(place);
    if (!queue.line.empty()) changed_.notify_all();  // the next may be able to go on, however this one's wait has ended
  });
}

// The room is taken when it returns true; false: no more rows are wanted.
bool Broker::makeRoom(MutexLock& lock, const std::string& name, uint64_t bytes, const Wait& wait) {
  const double from = monotonicSeconds();
  Queue& queue = queueNamed(name);
  if (!waitForRoom(lock, queue, bytes, wait))
    throw Error(ErrorKind::kTimeout,
                fmt::format("Timeout while feeding partition: the program has taken too few rows from queue '{}' to "
                            "make room; {} of {} MiB are full{}. Is it still training? A longer feed_timeout waits "
                            "longer",
                            name, held_ >> 20, budget_ >> 20, standingNow()));
  totals_.full += monotonicSeconds() - from;
  if (unasked()) totals_.left = true;
  if (noMoreRows()) return false;
  held_ += bytes, queue.held += bytes;
  return true;
}

void Broker::giveBack(Queue& queue, uint64_t bytes) {
  bytes = std::min(queue.held, bytes);
  queue.held -= bytes, held_ -= bytes;
  changed_.notify_all();
}

bool Broker::reserve(const std::string& name, uint64_t bytes, const Wait& wait) {
  MutexLock lock(mutex_);
  queueNamed(name);  // or an error
  return !isFed(name) || makeRoom(lock, name, bytes, wait);
}

void Broker::release(const std::string& name, uint64_t bytes) {
  const MutexLock lock(mutex_);
  if (isFed(name)) giveBack(queueNamed(name), bytes);
}

// false: nothing of it is left, and its room is given back.
bool Broker::leaveOutWhatCame(Queue& queue, Item& item) {
  try {
    const int64_t came = queue.places.add(*item.place, item.count);
    item.first += came, item.count -= came;
  } catch (const Error&) {
    giveBack(queue, item.bytes);
    throw;
  }
  if (item.count == 0) giveBack(queue, item.bytes);
  return item.count > 0;
}

std::string Broker::standing() {
  const MutexLock lock(mutex_);
  return standingNow();
}

std::string Broker::standingNow() const {
  const auto full = std::max_element(queues_.begin(), queues_.end(), [](const auto& one, const auto& other) {
    return one.second.held < other.second.held;
  });
  if (full == queues_.end() || full->second.held == 0) return "";
  std::string text =
      fmt::format("; queue '{}' holds {} of {} MiB", full->first, full->second.held >> 20, budget_ >> 20);
  const double now = monotonicSeconds();
  for (const auto& [name, queue] : queues_) {
    const bool wanted = queue.waiting > 0 || (queue.lacked >= 0 && now - queue.lacked < kJustNow);
    if (!isFed(name) || name == full->first || !wanted || !queue.items.empty()) continue;
    return text + fmt::format(
                      " while the program waits for rows of queue '{}': it must take, or drop, those of '{}' first, as "
                      "they are fed before",
                      name, full->first);
  }
  return text;
}

}  // namespace crema::node
