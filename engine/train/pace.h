// How long a step takes now, and what of it is waiting: over the steps of the last half minute, or over the last step where that took longer. A
// mean since the start would count the first steps, which wait for disks and caches. Before a few seconds have been
// measured behind the first step, with which the first test may count, it says nothing of the time that is left.
#pragma once
#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>

namespace crema::train {

// Seconds so far: for batches, for the sum over workers while it moves, and before, for slower ones to begin it.
struct Waits {
  double records = 0, exchange = 0, others = 0;
};

// What the time of a step goes to, each in [0, 1], all together 1; 0 before the first step. compute: tests and snapshots are in it.
struct TimeShares {
  double feed = 0, compute = 0, exchange = 0, wait = 0;
};

class Pace {
 public:
  // `iteration` steps are done at `seconds` of any clock that does not go back.
  void mark(double seconds, int64_t iteration, const Waits& waits = {}) {
    const Mark now = {seconds, iteration, waits};
    if (!marks_.empty() && !first_) first_ = now;
    if (first_ && !settled_ && seconds - first_->seconds >= kSettled) settled_ = true, marks_.front() = *first_;
    if (marks_.size() < 2 || marks_.back().seconds - marks_[marks_.size() - 2].seconds >= kGrain)
      marks_.push_back(now);
    else
      marks_.back() = now;
    while (marks_.size() > 2 && marks_[1].seconds <= seconds - kWindow) marks_.pop_front();
  }
  bool settled() const { return settled_; }  // secondsPerStep() may be multiplied by the steps that are left
  double secondsPerStep() const {            // 0 before the first step
    if (marks_.size() < 2 || marks_.back().iteration == marks_.front().iteration) return 0;
    return (marks_.back().seconds - marks_.front().seconds) /
           static_cast<double>(marks_.back().iteration - marks_.front().iteration);
  }
  TimeShares shares() const {
    const double time = marks_.size() < 2 ? 0 : marks_.back().seconds - marks_.front().seconds;
    if (time <= 0) return {};
    const Waits &from = marks_.front().waits, &to = marks_.back().waits;
    TimeShares s = {(to.records - from.records) / time, 0, (to.exchange - from.exchange) / time,
                    (to.others - from.others) / time};
    s.compute = std::max(0.0, 1 - s.feed - s.exchange - s.wait);
    return s;
  }

 private:
  static constexpr double kWindow = 30, kGrain = 0.5, kSettled = 3;  // seconds; a mark each half second is kept
  struct Mark {
    double seconds;
    int64_t iteration;
    Waits waits;
  };
  std::optional<Mark> first_;  // the end of the first step
  bool settled_ = false;
  std::deque<Mark> marks_;
};

}  // namespace crema::train
