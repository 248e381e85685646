#include "node/broker.h"

#include <algorithm>

#include "base/text.h"
#include "base/waiting.h"

namespace crema::node {
namespace {

constexpr char kResults[] = "output";
constexpr double kLook = 0.2;  // seconds between two looks at whether who waits is still there

}  // namespace

Broker::Broker(const std::vector<std::string>& queues, uint64_t budget) : budget_(budget) {
  for (const auto& name : queues) queues_[name];
  totals_.moved = monotonicSeconds();
  state_["state"] = "\"running\"";
}

Broker::Queue& Broker::queueNamed(const std::string& name) {
  const auto found = queues_.find(name);
  if (found != queues_.end()) return found->second;
  std::vector<std::string> names;
  for (const auto& [known, queue] : queues_) names.push_back(known);
  invalid("Queue '{}' not found on this node: it has {}; name it in `queues` of TFCluster.run", name,
          alternatives(names));
}

// Waits for ready(), for an error of the broker, which it throws, or for the end of who waits.
bool Broker::waitFor(MutexLock& lock, const Wait& wait, const std::function<bool()>& ready) {
  const auto over = [&]() CREMA_REQUIRES(mutex_) { return failed_ || ready(); };
  for (;;) {
    const bool met = waitUntil(changed_, lock, Deadline::earlier(wait.deadline, Deadline::after(kLook)), nullptr, over);
    if (failed_) throw *failed_;
    if (met) return true;
    if (wait.deadline.passed()) return false;
    if (wait.gone && wait.gone()) throw Error(ErrorKind::kPeer, "the client has gone");
  }
}

bool Broker::waitFor(MutexLock& lock, const Wait& wait, const std::function<bool()>& ready,
                     const std::function<void()>& atEnd) {
  try {
    const bool met = waitFor(lock, wait, ready);
    atEnd();
    return met;
  } catch (...) {
    atEnd();
    throw;
  }
}

// The program has ended, but for an error or because it wanted no more rows.
bool Broker::unasked() const { return ended_ && !failed_ && state_.at("state") == "\"running\""; }

bool Broker::noMoreRows() const {
  const auto& state = state_.at("state");
  return ended_ || state == "\"terminating\"" || state == "\"stopped\"";
}

bool Broker::put(const std::string& name, Item item, const Wait& wait, Item* as) {
  MutexLock lock(mutex_);
  Queue& queue = queueNamed(name);
  const bool fed = isFed(name);
  if (fed && item.block && !item.reserved && !makeRoom(lock, name, item.bytes, wait)) return false;
  if (fed && item.block && (failed_ || noMoreRows())) giveBack(queue, item.bytes);
  if (failed_) throw *failed_;
  if (fed && noMoreRows()) return false;
  const bool some = !fed || !item.block || !item.place || leaveOutWhatCame(queue, item);
  if (as) *as = item;
  if (!some) return true;
  if (fed) totals_.put += item.count, totals_.bytes += item.bytes, queue.places.came(item.count);
  if (item.mark == wire::END_OF_EPOCH) queue.places.endEpoch();
  if (name == kResults) totals_.moved = monotonicSeconds();
  if (name == kResults && item.block)
    putResults(std::move(item));
  else
    queue.items.push_back(std::move(item));
  changed_.notify_all();
  return true;
}

// Results of a feed that has gone are dropped, and what nobody is owed stays in the queue.
void Broker::putResults(Item item) {
  while (item.count > 0 && !owed_.empty()) {
    Owed& next = owed_.front();
    Item part = item;
    part.count = std::min(item.count, next.rows);
    item.first += part.count, item.count -= part.count, next.rows -= part.count;
    if (const auto feed = feeds_.find(next.feed); feed != feeds_.end()) feed->second.results.push_back(std::move(part));
    if (next.rows == 0) owed_.pop_front();
  }
  if (item.count > 0) queues_.at(kResults).items.push_back(std::move(item));
}

// While it waits for items there is more room for them: hasRoom().
bool Broker::waitForItems(MutexLock& lock, Queue& queue, const Wait& wait, const std::function<bool()>& ready) {
  if (!ready()) changed_.notify_all();
  ++queue.waiting;
  const bool met = waitFor(lock, wait, ready, [&]() CREMA_REQUIRES(mutex_) { --queue.waiting; });
  if (!met) queue.lacked = monotonicSeconds();
  return met;
}

std::optional<Item> Broker::get(const std::string& name, uint64_t feed, const Wait& wait) {
  MutexLock lock(mutex_);
  Queue& queue = queueNamed(name);
  // Looked up anew at each turn: the feed may be closed by another thread meanwhile.
  const auto closed = [&]() CREMA_REQUIRES(mutex_) { return feed != 0 && feeds_.find(feed) == feeds_.end(); };
  const auto itemsNow = [&]() CREMA_REQUIRES(mutex_) -> std::deque<Item>& {
    return feed != 0 ? feeds_.at(feed).results : queue.items;
  };
  const auto some = [&]() CREMA_REQUIRES(mutex_) {
    return closed() || !itemsNow().empty() || (feed != 0 ? ended_ : !queue.failed.empty());
  };
  const double from = monotonicSeconds();
  const bool met = feed == 0 ? waitForItems(lock, queue, wait, some) : waitFor(lock, wait, some);
  if (isFed(name)) totals_.idle += monotonicSeconds() - from;
  if (!met) return std::nullopt;
  if (feed == 0 && !queue.failed.empty()) badData("the feed has failed, and rows are missing: {}", queue.failed);
  if (closed()) invalid("there is no feed {}; it has been closed", feed);
  std::deque<Item>& items = itemsNow();
  if (items.empty()) badData("the program has ended before it returned a result for each row");
  Item item = std::move(items.front());
  items.pop_front();
  if (feed == 0) ++queue.inUse;
  if (feed == 0 && isFed(name)) {
    queue.used += item.bytes;
    totals_.taken += item.count, totals_.moved = monotonicSeconds();
    if (item.feed != 0 && item.count > 0) owed_.push_back({item.feed, item.count});
  }
  return item;
}

void Broker::done(const std::string& name, uint64_t bytes, int64_t count) {
  const MutexLock lock(mutex_);
  Queue& queue = queueNamed(name);
  if (isFed(name)) {
    queue.used -= std::min(queue.used, bytes);
    giveBack(queue, bytes), totals_.moved = monotonicSeconds();
  }
  queue.inUse -= std::clamp<int64_t>(count, 0, queue.inUse);
  changed_.notify_all();
}

bool Broker::join(const std::string& name, const Wait& wait) {
  MutexLock lock(mutex_);
  Queue& queue = queueNamed(name);
  return waitFor(lock, wait, [&]() CREMA_REQUIRES(mutex_) { return queue.items.empty() && queue.inUse == 0; });
}

int64_t Broker::drop(const std::string& name) {
  const MutexLock lock(mutex_);
  Queue& queue = queueNamed(name);
  int64_t rows = 0;
  for (const Item& item : queue.items) {
    rows += item.count;
    if (isFed(name)) giveBack(queue, item.bytes);
  }
  queue.items.clear();
  changed_.notify_all();
  return rows;
}

int64_t Broker::count(const std::string& name) {
  const MutexLock lock(mutex_);
  return static_cast<int64_t>(queueNamed(name).items.size());
}

uint64_t Broker::open() {
  const MutexLock lock(mutex_);
  feeds_[++lastFeed_];
  return lastFeed_;
}

void Broker::close(uint64_t feed) {
  const MutexLock lock(mutex_);
  feeds_.erase(feed);
  changed_.notify_all();  // who waits for its results hears of it
}

std::optional<std::string> Broker::look(const std::string& key) {
  const MutexLock lock(mutex_);
  const auto found = state_.find(key);
  return found == state_.end() ? std::nullopt : std::optional(found->second);
}

void Broker::set(const std::string& key, const std::string& value) {
  const MutexLock lock(mutex_);
  state_[key] = value;
  changed_.notify_all();
}

void Broker::endEpoch(const wire::NodeNote::Epoch& epoch) {
  const MutexLock lock(mutex_);
  const auto queue = queues_.find(epoch.queue());
  if (queue == queues_.end() || noMoreRows()) return;
  Item end;
  end.mark = wire::END_OF_EPOCH, end.epoch = epoch;
  queue->second.items.push_back(std::move(end));
  queue->second.places.endEpoch();
  changed_.notify_all();
}

wire::NodeNote::Counted Broker::counted(const wire::NodeNote::Counted& asked) {
  const MutexLock lock(mutex_);
  wire::NodeNote::Counted answer = asked;
  const auto queue = queues_.find(asked.queue());
  if (queue == queues_.end()) return answer;
  answer.set_of_call(queue->second.places.end(asked.call()));
  answer.set_rows(queue->second.places.rows());
  return answer;
}

void Broker::endFeeds(const std::string& failed) {
  const MutexLock lock(mutex_);
  for (auto& [name, queue] : queues_) {
    if (!isFed(name)) continue;
    queue.failed = failed;
    Item end;
    end.mark = wire::END_OF_FEED;
    queue.items.push_back(std::move(end));
  }
  changed_.notify_all();
}

void Broker::programEnded() {
  const MutexLock lock(mutex_);
  ended_ = true;
  held_ = 0;
  for (auto& [name, queue] : queues_) {
    queue.inUse = 0, queue.held = 0;
    if (!isFed(name)) continue;
    const auto rows = [](const Item& item) { return item.count > 0; };
    if (unasked() && std::any_of(queue.items.begin(), queue.items.end(), rows)) totals_.left = true;
    queue.items.clear();
  }
  changed_.notify_all();
}

void Broker::fail(const Error& why) {
  const MutexLock lock(mutex_);
  if (!failed_) failed_ = why;
  changed_.notify_all();
}

bool Broker::unwanted() {
  const MutexLock lock(mutex_);
  return noMoreRows();
}

Totals Broker::totals() {
  const MutexLock lock(mutex_);
  return totals_;
}

}  // namespace crema::node
