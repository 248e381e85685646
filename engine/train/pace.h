// How long a step takes now: over the steps of the last half minute, or over the last step where that took longer. A
// mean since the start would count the first steps, which wait for disks and caches. Before a few seconds have been
// measured behind the first step, with which the first test may count, it says nothing of the time that is left.
#pragma once
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>

namespace crema::train {

class Pace {
 public:
  // `iteration` steps are done at `seconds` of any clock that does not go back.
  void mark(double seconds, int64_t iteration) {
    if (!marks_.empty() && !first_) first_ = {seconds, iteration};
    if (first_ && !settled_ && seconds - first_->first >= kSettled) settled_ = true, marks_.front() = *first_;
    if (marks_.size() < 2 || marks_.back().first - marks_[marks_.size() - 2].first >= kGrain)
      marks_.emplace_back(seconds, iteration);
    else
      marks_.back() = {seconds, iteration};
    while (marks_.size() > 2 && marks_[1].first <= seconds - kWindow) marks_.pop_front();
  }
  bool settled() const { return settled_; }  // secondsPerStep() may be multiplied by the steps that are left
  double secondsPerStep() const {            // 0 before the first step
    if (marks_.size() < 2 || marks_.back().second == marks_.front().second) return 0;
    return (marks_.back().first - marks_.front().first) /
           static_cast<double>(marks_.back().second - marks_.front().second);
  }

 private:
  static constexpr double kWindow = 30, kGrain = 0.5, kSettled = 3;  // seconds; a mark each half second is kept
  std::optional<std::pair<double, int64_t>> first_;                  // the end of the first step
  bool settled_ = false;
  std::deque<std::pair<double, int64_t>> marks_;
};

}  // namespace crema::train
