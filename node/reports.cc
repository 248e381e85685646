#include "node/reports.h"

#include <algorithm>

#include "base/deadline.h"

namespace crema::node {

Reports::~Reports() {
  std::list<std::shared_ptr<Replay>> all;
  {
    const MutexLock lock(mutex_);
    all.swap(replays_);
  }
  for (const auto& one : all) one->withdrawn = true;
  for (const auto& one : all) one->thread.join();
}

void Reports::say(const wire::NodeNote& note) {
  const MutexLock lock(mutex_);
  notes_.push_back(note);
}

void Reports::asked(const wire::NodeNote& note) {
  if (note.has_replay()) replay(note.replay());
  const MutexLock lock(mutex_);
  if (note.has_counted()) {
    notes_.emplace_back();
    *notes_.back().mutable_counted() = broker_.counted(note.counted());
  }
  if (note.has_drained()) drains_.push_back(note.drained());
}

bool Reports::waiting() {
  const MutexLock lock(mutex_);
  return !notes_.empty();
}

// The thread that hears of the run's end, which asks for this, waits for no program: the new thread waits for the old.
void Reports::replay(const wire::NodeNote::Replay& what) {
  const auto mine = std::make_shared<Replay>();
  for (const auto& queue : what.queue()) mine->queues.insert(queue.queue());
  const MutexLock lock(mutex_);
  withdraw(*mine);
  mine->silence = what.silence();
  replays_.push_back(mine);
  mine->thread = std::thread([this, what, mine = mine.get()] {
    for (const auto& one : mine->before) one->thread.join();
    mine->before.clear();
    wire::NodeNote done;
    done.mutable_replayed()->set_serial(what.serial());
    if (const std::string failed = feedAgain(what, *mine); !failed.empty()) done.mutable_replayed()->set_failed(failed);
    const MutexLock notes(mutex_);
    mine->over = true;
    if (!mine->withdrawn) notes_.push_back(done);
  });
}

// Calls of train() for other queues go on beside it. Threads that have ended are joined here.
void Reports::withdraw(Replay& by) {
  drains_.remove_if([&](const wire::NodeNote::Drained& drain) { return by.queues.count(drain.queue()) > 0; });
  replays_.remove_if([&](const std::shared_ptr<Replay>& one) {
    const bool same =
        std::any_of(one->queues.begin(), one->queues.end(), [&](auto& queue) { return by.queues.count(queue) > 0; });
    if (same) one->withdrawn = true;
    if (same || one->over) by.before.push_back(one);
    return same || one->over;
  });
}

// Why it failed, if it did.
std::string Reports::feedAgain(const wire::NodeNote::Replay& what, const Replay& mine) {
  const auto over = [&] { return mine.withdrawn || interrupt_.raised(); };
  try {
    for (int epoch = 0; epoch < what.epochs() && !over(); ++epoch)
      for (const auto& queue : what.queue()) {
        kept_.replay(queue.queue(), broker_, over);
        if (!over()) broker_.endEpoch(queue);
      }
    for (const auto& queue : what.queue()) kept_.forget(queue.queue());
  } catch (...) {
    return asError(std::current_exception()).what();
  }
  return "";
}

// A program that computes takes rows again and again, and one that has what it wants ends or calls terminate().
void Reports::watch(const std::function<void(const std::string&)>& stuck) {
  double silence = 0;
  {
    const MutexLock lock(mutex_);
    for (const auto& one : replays_)
      if (!one->over) silence = std::max(silence, one->silence);
    for (const auto& drain : drains_) silence = std::max(silence, drain.silence());
  }
  if (silence <= 0 || broker_.unwanted()) {
    watched_ = 0;
    return;
  }
  const double now = monotonicSeconds();
  if (watched_ == 0) watched_ = now;
  if (now - std::max(watched_, broker_.totals().moved) > silence)
    stuck(
        fmt::format("has taken no rows for {:.0f} s (feed_timeout: raise it if a batch takes longer), and is not done "
                    "with those that it was fed{}",
                    silence, broker_.standing()));
}

void Reports::send(cluster::Session& session, int member, bool programOver,
                   const std::function<void(const std::string&)>& stuck) {
  std::list<wire::NodeNote> notes;
  {
    const MutexLock lock(mutex_);
    notes.swap(notes_);
    drains_.remove_if([&](const wire::NodeNote::Drained& drain) {
      if (!programOver && !broker_.unwanted() && !broker_.join(drain.queue(), {Deadline::after(0)})) return false;
      notes.emplace_back();
      *notes.back().mutable_drained() = drain;
      return true;
    });
  }
  for (const auto& note : notes) report(session, member, note);
  if (!programOver) watch(stuck);
}

void Reports::sendFed(cluster::Session& session, int member) {
  const Totals t = broker_.totals();
  if (t.put == last_.put && t.taken == last_.taken && t.left == last_.left) return;
  last_ = t;
  wire::NodeNote note;
  note.mutable_fed()->set_rows(t.put), note.mutable_fed()->set_taken(t.taken), note.mutable_fed()->set_bytes(t.bytes);
  note.mutable_fed()->set_idle(t.idle), note.mutable_fed()->set_full(t.full);
  if (t.left) note.mutable_fed()->set_left(true);
  report(session, member, note);
}

void Reports::report(cluster::Session& session, int member, const wire::NodeNote& note) {
  wire::Event event;
  event.mutable_note()->set_member(member);
  event.mutable_note()->set_text(note.SerializeAsString());
  session.report(event);
}

}  // namespace crema::node
