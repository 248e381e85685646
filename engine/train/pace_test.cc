#include "train/pace.h"

#include <gtest/gtest.h>

namespace crema::train {
namespace {

TEST(Pace, TellsOfRecentStepsNotOfTheFirst) {
  Pace pace;
  EXPECT_EQ(pace.secondsPerStep(), 0);
  pace.mark(100, 7);
  EXPECT_EQ(pace.secondsPerStep(), 0);
  double now = 100;
  int64_t step = 7;
  for (int i = 0; i < 3; ++i) pace.mark(now += 20, ++step);  // slow at first
  EXPECT_NEAR(pace.secondsPerStep(), 20, 1e-9);
  for (int i = 0; i < 100; ++i) pace.mark(now += 0.01, ++step);
  EXPECT_GT(pace.secondsPerStep(), 0.1);  // a second later the slow ones still count
  for (int i = 0; i < 3200; ++i) pace.mark(now += 0.01, ++step);
  EXPECT_NEAR(pace.secondsPerStep(), 0.01, 0.001);
  for (int i = 0; i < 3; ++i) pace.mark(now += 100, ++step);  // slow again later
  EXPECT_NEAR(pace.secondsPerStep(), 100, 1);
}

TEST(Pace, SharesAreOfTheTimeThatIsLookedAt) {
  Pace pace;
  EXPECT_EQ(pace.shares().feed, 0);
  EXPECT_EQ(pace.shares().compute, 0);
  pace.mark(10, 0, {3, 1, 2});
  EXPECT_EQ(pace.shares().exchange, 0);
  pace.mark(20, 5, {5, 6, 3});
  EXPECT_NEAR(pace.shares().feed, 0.2, 1e-9);
  EXPECT_NEAR(pace.shares().exchange, 0.5, 1e-9);
  EXPECT_NEAR(pace.shares().wait, 0.1, 1e-9);
  EXPECT_NEAR(pace.shares().compute, 0.2, 1e-9);
  for (int i = 1; i <= 100; ++i)
    pace.mark(20 + i, 5 + i, {5 + 0.1 * i, 6, 3});  // what is half a minute old counts no longer
  EXPECT_NEAR(pace.shares().feed, 0.1, 0.01);
  EXPECT_NEAR(pace.shares().compute, 0.9, 0.01);
  EXPECT_NEAR(pace.shares().exchange, 0, 1e-9);
}

TEST(Pace, SettlesOnceSecondsBehindTheFirstStepAreMeasured) {
  Pace pace;
  double now = 0;
  int64_t step = 0;
  pace.mark(now, step);
  pace.mark(now += 40, ++step);  // the first step, behind a long test
  EXPECT_FALSE(pace.settled());
  for (int i = 0; i < 29; ++i) pace.mark(now += 0.1, ++step);
  EXPECT_FALSE(pace.settled());
  for (int i = 0; i < 2; ++i) pace.mark(now += 0.1, ++step);
  EXPECT_TRUE(pace.settled());
  EXPECT_NEAR(pace.secondsPerStep(), 0.1, 1e-6);  // the first step counts no longer
}

TEST(Pace, LongStepsSettleWithTheSecond) {
  Pace pace;
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(pace.settled());
    pace.mark(60.0 * i, i);
  }
  EXPECT_TRUE(pace.settled());
  EXPECT_NEAR(pace.secondsPerStep(), 60, 1e-9);
}

}  // namespace
}  // namespace crema::train
