// Heartbeats of a process that works for its host, and how one that hangs ends.
#include "host/pulse.h"

#include <gtest/gtest.h>

#include <atomic>
#include <string>

#include "base/mutex.h"
#include "support/hand_clock.h"

namespace crema::host {
namespace {

class PulseTest : public testing::Test {
 protected:
  void emit(const wire::Event& e) {
    EXPECT_TRUE(e.has_alive());
    const MutexLock lock(reads_);  // a host that does not read holds it
    ++alive_;
  }
  std::unique_ptr<Pulse> pulse(double hang) {
    return std::make_unique<Pulse>([this](const wire::Event& e) { emit(e); }, [this] { return count_.load(); }, hang,
                                   [this](const Error& why) {
                                     const MutexLock lock(mutex_);
                                     hung_ = why.what();
                                   });
  }
  std::string hung() {
    const MutexLock lock(mutex_);
    return hung_;
  }
  // Until so many more signs have come.
  bool beats(int more) {
    return clock_.advanceUntil([this, until = alive_ + more] { return alive_ >= until; }, 0.2);
  }

  test::HandClock clock_;
  Mutex reads_, mutex_;
  std::string hung_ CREMA_GUARDED_BY(mutex_);
  std::atomic<int> alive_{0};
  std::atomic<int64_t> count_{0};
};

TEST_F(PulseTest, BeatsEverySecondAlsoWhereASlowBatchIsComputed) {
  const auto p = pulse(100);
  const double from = monotonicSeconds();
  EXPECT_TRUE(beats(20));
  EXPECT_GE(monotonicSeconds() - from, 20);
  EXPECT_EQ(hung(), "");
}

TEST_F(PulseTest, WorkThatGetsNoFurtherHangs) {
  const auto p = pulse(10);
  for (int i = 0; i < 30; ++i) {
    EXPECT_TRUE(beats(1));
    ++count_;
  }
  EXPECT_EQ(hung(), "") << "it got on";
  EXPECT_TRUE(clock_.advanceUntil([&] { return !hung().empty(); }, 0.2));
  EXPECT_NE(hung().find(" has got no further for 1"), std::string::npos) << hung();
  const int last = alive_;
  for (int i = 0; i < 20; ++i) clock_.advance(0.5), std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(alive_, last) << "and it says no more that it lives";
}

// Nor does it hang when the process has been stopped, and the clock jumps.
TEST_F(PulseTest, AHostThatDoesNotReadIsNoHang) {
  const auto p = pulse(10);
  EXPECT_TRUE(beats(2));
  {
    const MutexLock lock(reads_);
    for (int i = 0; i < 100; ++i) clock_.advance(1), std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_TRUE(beats(2));
  EXPECT_EQ(hung(), "");
  clock_.advance(1000);
  EXPECT_TRUE(beats(2));
  EXPECT_EQ(hung(), "");
}

TEST_F(PulseTest, NothingIsSaidBehindItsEnd) {
  pulse(10).reset();
  auto p = pulse(10);
  EXPECT_TRUE(beats(1));
  p.reset();
  const int last = alive_;
  clock_.advance(5);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_EQ(alive_, last);
}

}  // namespace
}  // namespace crema::host
