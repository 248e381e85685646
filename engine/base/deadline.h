// A point in time after which waiting is an error. Monotonic.
#pragma once
#include <algorithm>
#include <chrono>

namespace crema {

class Deadline {
 public:
  // Whatever the number, a point in time: NaN is now, and nothing waits longer than thirty years.
  static Deadline after(double seconds) {
    seconds = seconds > 0 ? std::min(seconds, 1e9) : 0;
    return Deadline(Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds)));
  }
  static Deadline earlier(Deadline a, Deadline b) { return a.end_ < b.end_ ? a : b; }
  double left() const {
    return std::chrono::duration<double>(end_ - Clock::now()).count();
  }  // seconds, negative when over
  bool passed() const { return left() <= 0; }
  int pollMillis() const { return static_cast<int>(std::clamp(left() * 1000 + 1, 0.0, 1e6)); }

 private:
  using Clock = std::chrono::steady_clock;
  explicit Deadline(Clock::time_point end) : end_(end) {}
  Clock::time_point end_;
};

inline double monotonicSeconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace crema
