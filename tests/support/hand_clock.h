// The process's clock under a test's control: it stands still until the test moves it on, so that timeouts of minutes
// take milliseconds and occur at an exact time, on a machine of any speed.
#pragma once
#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <thread>

#include "base/clock.h"
#include "base/deadline.h"

namespace crema::test {

// Seconds of real time after which what a test waits for is taken not to come: beside other work, and with a sanitizer,
// a thread may get its turn late.
constexpr double kPatience = 120;
inline Deadline patience() { return Deadline::after(kPatience); }

// Waits in real time for other threads; false when it has not happened within kPatience, or, in a test that has failed
// already, within a second.
inline bool soon(const std::function<bool()>& happened, const std::function<void()>& meanwhile = nullptr) {
  const auto end = Clock::Steady::now() + std::chrono::duration<double>(testing::Test::HasFailure() ? 1 : kPatience);
  while (!happened()) {
    if (Clock::Steady::now() > end) return false;
    if (meanwhile) meanwhile();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

// Threads that wait by the clock must have ended before this is destroyed.
class HandClock {
 public:
  HandClock() { Clock::hold(Clock::Steady::now()); }
  ~HandClock() { Clock::release(); }
  HandClock(const HandClock&) = delete;

  void advance(double seconds) {
    Clock::hold(Clock::now() +
                std::chrono::duration_cast<Clock::Steady::duration>(std::chrono::duration<double>(seconds)));
  }
  // Advances in small steps until it has happened, for waits whose length does not matter.
  bool advanceUntil(const std::function<bool()>& happened, double step = 0.05) {
    return soon(happened, [&] { advance(step); });
  }
};

}  // namespace crema::test
