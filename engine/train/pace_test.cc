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

}  // namespace
}  // namespace crema::train
