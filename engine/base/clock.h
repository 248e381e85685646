// The clock that every deadline and every measure of silence reads: the machine's steady one or, in a test, one that
// stands still until the test moves it (tests/support/hand_clock.h). There is one for the whole process: a wait on one
// clock for a deadline of another would be a mistake that no type reveals.
#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>

namespace crema {

class Clock {
 public:
  using Steady = std::chrono::steady_clock;
  static Steady::time_point now() {
    const int64_t held = held_.load(std::memory_order_acquire);
    return held == kRuns ? Steady::now() : Steady::time_point(Steady::duration(held));
  }
  // A wait sleeps no longer than this before it looks at the clock again. Moving a test's clock wakes no thread, so
  // sleeps are short there.
  static double longestSleep() { return held_.load(std::memory_order_acquire) == kRuns ? 1000 : 0.005; }

  // For tests alone.
  static void hold(Steady::time_point at) { held_.store(at.time_since_epoch().count(), std::memory_order_release); }
  static void release() { held_.store(kRuns, std::memory_order_release); }

 private:
  static constexpr int64_t kRuns = std::numeric_limits<int64_t>::min();
  inline static std::atomic<int64_t> held_{kRuns};  // what now() says; kRuns: the machine's clock
};

inline double monotonicSeconds() { return std::chrono::duration<double>(Clock::now().time_since_epoch()).count(); }

}  // namespace crema
