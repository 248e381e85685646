// A point in time after which waiting is an error. Monotonic.
#pragma once
#include <algorithm>
#include <chrono>

#include "base/clock.h"

namespace crema {

class Deadline {
 public:
  // Any number gives a valid point in time: NaN means now, and values are cut off at thirty years.
  static Deadline after(double seconds) {
    seconds = seconds > 0 ? std::min(seconds, 1e9) : 0;
    return Deadline(Clock::now() +
                    std::chrono::duration_cast<Clock::Steady::duration>(std::chrono::duration<double>(seconds)));
  }
  static Deadline earlier(Deadline a, Deadline b) { return a.end_ < b.end_ ? a : b; }
  double left() const {
    return std::chrono::duration<double>(end_ - Clock::now()).count();
  }  // seconds, negative when over
  bool passed() const { return left() <= 0; }
  // The timeout for poll() in milliseconds. poll() may return before the deadline; callers loop.
  int pollMillis() const { return static_cast<int>(std::clamp(left() * 1000 + 1, 0.0, Clock::longestSleep() * 1000)); }

 private:
  explicit Deadline(Clock::Steady::time_point end) : end_(end) {}
  Clock::Steady::time_point end_;
};

}  // namespace crema
