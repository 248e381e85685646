#include "cluster/membership.h"

#include <algorithm>
#include <map>

#include "base/error.h"

namespace crema::cluster {
namespace {
constexpr int kTroubles = 3;
}

const char* name(Replacement r) {
  return r == Replacement::kGoOn ? "continue" : r == Replacement::kWait ? "wait" : "fail";
}

Replacement replacementNamed(const std::string& text) {
  for (const Replacement r : {Replacement::kGoOn, Replacement::kWait, Replacement::kFail})
    if (text == name(r)) return r;
  invalid(
      "replacement is '{}'; give continue (the others go on at once), wait (for a new worker, up to the replacement "
      "timeout) or fail",
      text);
}

Membership::Membership(const Rules& rules) : rules_(rules), seats_(static_cast<size_t>(rules.seats)) {}

int Membership::count(Seat is) const {
  return static_cast<int>(std::count_if(seats_.begin(), seats_.end(), [&](const Place& p) { return p.is == is; }));
}

bool Membership::among(int seat) const { return std::find(members_.begin(), members_.end(), seat) != members_.end(); }

void Membership::joined(int seat) { seats_[static_cast<size_t>(seat)] = {Seat::kJoined}; }

void Membership::ready(int seat) {
  Place& p = seats_[static_cast<size_t>(seat)];
  if (p.is == Seat::kJoined) p.is = Seat::kReady;
}

void Membership::left(int seat) {
  Place& p = seats_[static_cast<size_t>(seat)];
  const bool finished = p.is == Seat::kFinished || p.is == Seat::kGone;
  if (p.is == Seat::kRunning || p.is == Seat::kPaused) lost_ = true;
  p = {finished ? Seat::kGone : Seat::kEmpty};
}

void Membership::finished(int seat) {
  Place& p = seats_[static_cast<size_t>(seat)];
  if (p.is == Seat::kRunning) p.is = Seat::kFinished;
}

void Membership::paused(int seat, uint32_t generation, int64_t iteration, int blamed) {
  Place& p = seats_[static_cast<size_t>(seat)];
  const uint32_t leaving = phase_ == Phase::kRegrouping ? generation_ - 1 : generation_;
  if ((p.is != Seat::kRunning && p.is != Seat::kFinished) || generation != leaving)
    return;  // late: of one that is over
  p = {Seat::kPaused, iteration, blamed};
}

Membership::Say Membership::next(bool waited) {
  if (phase_ == Phase::kGathering) {
    const int ready = count(Seat::kReady);
    if (ready < rules_.seats && !(waited && rules_.sharesMove && ready >= least())) return Say::kNothing;
    return start(waited);
  }
  return phase_ == Phase::kRunning ? whenRunning() : whenRegrouping(waited);
}

bool Membership::shouldRegroup() const { return lost_ || count(Seat::kPaused) > 0 || count(Seat::kReady) > 0; }

Membership::Say Membership::whenRunning() {
  // A newcomer, or a loss after which those that are left have finished already, changes nothing at the end.
  const auto done = [this](int s) { return seat(s) == Seat::kFinished || seat(s) == Seat::kGone; };
  if (std::all_of(members_.begin(), members_.end(), done)) return Say::kOver;
  if (!shouldRegroup()) return Say::kNothing;
  if (lost_ && rules_.replacement == Replacement::kFail) return Say::kTooFew;
  phase_ = Phase::kRegrouping;
  ++generation_;
  atOnce_ = lost_ || count(Seat::kPaused) > 0;
  return atOnce_ ? Say::kRegroup : Say::kBorder;
}

// The seat that most of those who have paused by themselves could not reach; the last one of several.
bool Membership::evict() {
  std::map<int, int> blame;
  for (const int s : members_)
    if (const int b = seats_[static_cast<size_t>(s)].blamed; b >= 0 && among(b)) ++blame[b];
  if (blame.empty()) return false;
  evicted_ = std::max_element(blame.begin(), blame.end(), [](auto& a, auto& b) { return a.second <= b.second; })->first;
  troubles_ = 0;
  return true;
}

Membership::Say Membership::whenRegrouping(bool waited) {
  const auto stays = [this](int s) { return seat(s) == Seat::kRunning || (atOnce_ && seat(s) == Seat::kFinished); };
  if (!atOnce_) {
    const auto done = [this](int s) { return seat(s) == Seat::kFinished || seat(s) == Seat::kGone; };
    if (std::all_of(members_.begin(), members_.end(), done)) return Say::kOver;
    const auto blames = [this](int s) { return seats_[static_cast<size_t>(s)].blamed >= 0; };
    if (lost_ || std::any_of(members_.begin(), members_.end(), blames)) {
      if (lost_ && rules_.replacement == Replacement::kFail) return Say::kTooFew;
      atOnce_ = true;
      return Say::kRegroup;
    }
  }
  if (std::any_of(members_.begin(), members_.end(), stays)) return Say::kNothing;
  return start(waited);
}

bool Membership::awaitsReplacement() const {
  return phase_ == Phase::kRegrouping && count(Seat::kRunning) == 0 && count(Seat::kFinished) == 0;
}

std::string Membership::text() const {
  std::string all = fmt::format("{} {} {}{}{} {} {}", static_cast<int>(phase_), generation_, lost_, atOnce_, judged_,
                                troubles_, troubleAt_);
  for (const Place& p : seats_) all += fmt::format(" {}/{}/{}", static_cast<int>(p.is), p.iteration, p.blamed);
  for (const int m : members_) all += fmt::format(" {}", m);
  return all;
}

Membership::Say Membership::start(bool waited) {
  const bool first = phase_ == Phase::kGathering;
  const int paused = count(Seat::kPaused), there = paused + count(Seat::kReady);
  const bool stateIsThere =
      std::any_of(seats_.begin(), seats_.end(), [](const Place& p) { return p.iteration != kNewcomer; });
  if (!first && !stateIsThere) return Say::kTooFew;
  int64_t furthest = kNewcomer;
  for (const Place& p : seats_) furthest = std::max(furthest, p.iteration);
  if (!first && !lost_ && !judged_) {
    judged_ = true;
    const bool trouble = std::any_of(seats_.begin(), seats_.end(), [](const Place& p) { return p.blamed >= 0; });
    troubles_ = !trouble ? 0 : furthest == troubleAt_ ? troubles_ + 1 : 1;
    troubleAt_ = furthest;
    if (troubles_ >= kTroubles && evict()) return Say::kGiveUp;
  }
  const bool all = there == rules_.seats, fewer = rules_.sharesMove && there >= least();
  const bool waits = first || (lost_ && rules_.replacement == Replacement::kWait);
  if (!all && !waited && (!fewer || waits)) return Say::kNothing;
  if (!all && !fewer) return Say::kTooFew;
  if (first) generation_ = 1;
  members_.clear();
  for (int s = 0; s < rules_.seats; ++s) {
    Place& p = seats_[static_cast<size_t>(s)];
    if (p.is != Seat::kPaused && p.is != Seat::kReady) continue;
    p.is = Seat::kRunning, p.blamed = -1;
    members_.push_back(s);
  }
  phase_ = Phase::kRunning;
  lost_ = atOnce_ = judged_ = false;
  return Say::kStart;
}

}  // namespace crema::cluster
