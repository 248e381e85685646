#include "node/reports.h"

#include <algorithm>

#include "base/deadline.h"

namespace crema::node {

Reports::~Reports() {
  if (withdrawn_) *withdrawn_ = true;
  if (replayer_.joinable()) replayer_.join();
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

void Reports::replay(const wire::NodeNote::Replay& what) {
  // The host asks for one after the other: nobody waits for the one before, and the session's thread must not either.
  if (withdrawn_) *withdrawn_ = true;
  withdrawn_ = std::make_shared<std::atomic<bool>>(false);
  {
    const MutexLock lock(mutex_);
    replaying_ = what.silence();
    drains_.clear();
  }
  replayer_ = std::thread([this, what, withdrawn = withdrawn_, before = std::move(replayer_)]() mutable {
    if (before.joinable()) before.join();
    const auto over = [&] { return *withdrawn || interrupt_.raised(); };
    wire::NodeNote done;
    done.mutable_replayed()->set_serial(what.serial());
    try {
      for (int epoch = 0; epoch < what.epochs() && !over(); ++epoch)
        for (const auto& queue : what.queue()) {
          kept_.replay(queue.queue(), broker_, over);
          if (!over()) broker_.endEpoch(queue);
        }
      for (const auto& queue : what.queue()) kept_.forget(queue.queue());
    } catch (...) {
      done.mutable_replayed()->set_failed(asError(std::current_exception()).what());
    }
    const MutexLock lock(mutex_);
    if (*withdrawn) return;
    replaying_ = 0;
    notes_.push_back(done);
  });
}

// A program that computes takes rows again and again, and one that has what it wants ends or calls terminate().
void Reports::watch(const std::function<void(const std::string&)>& stuck) {
  double silence = 0;
  {
    const MutexLock lock(mutex_);
    silence = replaying_;
    for (const auto& drain : drains_) silence = std::max(silence, drain.silence());
  }
  if (silence <= 0 || broker_.unwanted()) {
    watched_ = 0;
    return;
  }
  const double now = monotonicSeconds();
  if (watched_ == 0) watched_ = now;
  if (now - std::max(watched_, broker_.totals().moved) > silence)
    stuck(fmt::format("has taken no rows for {:.0f} s, and is not done with those that it was fed{}", silence,
                      broker_.standing()));
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
