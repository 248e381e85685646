#include "cluster/membership.h"

#include <algorithm>
#include <tuple>

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

Membership::Membership(const Rules& rules)
    : rules_(rules), seats_(static_cast<size_t>(rules.seats)), failed_(seats_.size()), links_(seats_.size()) {}

int Membership::count(Seat is) const {
  return static_cast<int>(std::count_if(seats_.begin(), seats_.end(), [&](const Place& p) { return p.is == is; }));
}

bool Membership::among(int seat) const { return std::find(members_.begin(), members_.end(), seat) != members_.end(); }

void Membership::joined(int seat) { seats_[static_cast<size_t>(seat)] = {Seat::kJoined}; }

void Membership::ready(int seat) {
  Place& p = seats_[static_cast<size_t>(seat)];
  if (p.is == Seat::kJoined) p.is = Seat::kReady;
}

void Membership::failed(int seat) { failed_[static_cast<size_t>(seat)] = true; }

bool Membership::spares(int seat) const {
  const auto joins = [this](int s) { return this->seat(s) == Seat::kJoined || this->seat(s) == Seat::kReady; };
  if (!joins(seat) || phase_ != Phase::kGathering) return joins(seat);
  int others = 0;
  for (int s = 0; s < rules_.seats; ++s)
    others += s != seat && joins(s) && (this->seat(s) == Seat::kReady || !failed_[static_cast<size_t>(s)]);
  return rules_.first > 0 && rules_.sharesMove && others >= rules_.first;
}

void Membership::left(int seat) {
  Place& p = seats_[static_cast<size_t>(seat)];
  const bool finished = p.is == Seat::kFinished || p.is == Seat::kGone;
  if (p.is == Seat::kRunning || p.is == Seat::kPaused) {
    lost_ = true, troubles_ = 0;
    std::fill(links_.begin(), links_.end(), 0);
  }
  p = {finished ? Seat::kGone : Seat::kEmpty};
}

bool Membership::finished(int seat) {
  if (phase_ == Phase::kRegrouping && atOnce_) return false;
  Place& p = seats_[static_cast<size_t>(seat)];
  if (p.is != Seat::kRunning) return false;
  p.is = Seat::kFinished;
  return true;
}

bool Membership::paused(int seat, uint32_t generation, int64_t iteration, const Unreached& others) {
  Place& p = seats_[static_cast<size_t>(seat)];
  const uint32_t leaving = phase_ == Phase::kRegrouping ? generation_ - 1 : generation_;
  if ((p.is != Seat::kRunning && p.is != Seat::kFinished) || generation != leaving) return false;
  p = {Seat::kPaused, iteration};
  const bool asked =
      others.ended && phase_ == Phase::kRegrouping && atOnce_;  // the others have left, as they were asked to
  for (const int o : others.members)
    if (!asked && o != seat && among(o)) p.unreached.push_back(o);
  return true;
}

void Membership::divideAnew() {
  if (phase_ == Phase::kRunning && rules_.sharesMove) divides_ = true;
}

Membership::Say Membership::next(bool waited) {
  if (phase_ == Phase::kGathering) {
    const int ready = count(Seat::kReady);
    if (ready < wanted() && !(waited && rules_.sharesMove && ready >= least())) return Say::kNothing;
    return start(waited);
  }
  return phase_ == Phase::kRunning ? whenRunning() : whenRegrouping(waited);
}

bool Membership::shouldRegroup() const {
  return lost_ || divides_ || count(Seat::kPaused) > 0 || count(Seat::kReady) > 0;
}

// The first member has finished, so that what it writes is there, and no other one still computes. Whoever was lost before
// it had finished is not needed any more, nor is a newcomer.
bool Membership::over() const {
  const auto computes = [this](int s) { return seat(s) == Seat::kRunning || seat(s) == Seat::kPaused; };
  return (seat(members_[0]) == Seat::kFinished || seat(members_[0]) == Seat::kGone) &&
         std::none_of(members_.begin(), members_.end(), computes);
}

Membership::Say Membership::whenRunning() {
  if (over()) return Say::kOver;
  if (!shouldRegroup()) return Say::kNothing;
  if (lost_ && rules_.replacement == Replacement::kFail) return Say::kTooFew;
  phase_ = Phase::kRegrouping;
  ++generation_;
  if (!lost_ && count(Seat::kPaused) == 0) return Say::kBorder;
  askAtOnce();
  return Say::kRegroup;
}

// The last steps are done anew: who has finished computes again, and who has left behind that is missing.
void Membership::askAtOnce() {
  atOnce_ = true;
  for (Place& p : seats_) {
    if (p.is == Seat::kFinished) p.is = Seat::kRunning;
    if (p.is == Seat::kGone) p = {};
  }
}

// Counts this regrouping, in which nobody was lost. Whatever its reason was, a run goes on to the next step or has trouble.
bool Membership::inTrouble(int64_t furthest) {
  judged_ = true;
  bool trouble = furthest == troubleAt_;
  if (!trouble) troubles_ = 0, std::fill(links_.begin(), links_.end(), 0);
  troubleAt_ = furthest;
  for (const int s : members_)
    for (const int other : seats_[static_cast<size_t>(s)].unreached)
      trouble = true, ++links_[static_cast<size_t>(s)], ++links_[static_cast<size_t>(other)];
  troubles_ += trouble;
  return troubles_ >= kTroubles && members_.size() > 1;
}

// The member with most links that do not work; of several a newcomer, which has nothing yet, or the last one.
void Membership::evict() {
  const auto order = [this](int s) {
    const auto i = static_cast<size_t>(s);
    return std::tuple(links_[i], -seats_[i].iteration, s);
  };
  evicted_ = *std::max_element(members_.begin(), members_.end(), [&](int a, int b) { return order(a) < order(b); });
}

Membership::Say Membership::whenRegrouping(bool waited) {
  const auto stays = [this](int s) { return seat(s) == Seat::kRunning; };
  if (!atOnce_) {
    if (over()) return Say::kOver;
    const auto misses = [this](int s) { return !seats_[static_cast<size_t>(s)].unreached.empty(); };
    if (lost_ || std::any_of(members_.begin(), members_.end(), misses)) {
      if (lost_ && rules_.replacement == Replacement::kFail) return Say::kTooFew;
      askAtOnce();
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
  std::string all = fmt::format("{} {} {}{}{}{} {} {}", static_cast<int>(phase_), generation_, lost_, divides_, atOnce_,
                                judged_, troubles_, troubleAt_);
  for (size_t i = 0; i < seats_.size(); ++i) {
    all += fmt::format(" {}/{}/{}", static_cast<int>(seats_[i].is), seats_[i].iteration, links_[i]);
    for (const int u : seats_[i].unreached) all += fmt::format(".{}", u);
  }
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
  if (!first && !lost_ && !judged_ && inTrouble(furthest)) {
    evict();
    return Say::kGiveUp;
  }
  const bool all = there >= wanted(), fewer = rules_.sharesMove && there >= least();
  const bool waits = first || (lost_ && rules_.replacement == Replacement::kWait);
  if (!all && !waited && (!fewer || waits)) return Say::kNothing;
  if (!all && !fewer) return Say::kTooFew;
  if (first) generation_ = 1;
  members_.clear();
  for (int s = 0; s < rules_.seats; ++s) {
    Place& p = seats_[static_cast<size_t>(s)];
    if (p.is != Seat::kPaused && p.is != Seat::kReady) continue;
    p.is = Seat::kRunning, p.unreached.clear();
    members_.push_back(s);
  }
  phase_ = Phase::kRunning;
  lost_ = divides_ = atOnce_ = judged_ = false;
  return Say::kStart;
}

}  // namespace crema::cluster
