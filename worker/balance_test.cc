// When the ranks are divided anew, and what the next generations make of it.
#include "worker/balance.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace crema::worker {
namespace {

class BalanceOfThree : public testing::Test {
 protected:
  BalanceOfThree() { balance_.begin({0, 1, 2}, spent_); }
  // Steps go on until `seconds` later; worker w takes seconds_[w] for a rank, and all wait for the slowest.
  void train(double seconds) {
    const Shares& n = balance_.shares();
    double step = 0;
    for (size_t w = 0; w < 3; ++w) step = std::max(step, n[w] * seconds_[w]);
    for (const double end = now_ + seconds; now_ < end; now_ += step)
      for (size_t w = 0; w < 3; ++w) {
        const double own = n[w] * seconds_[w];
        spent_[w] = {spent_[w].passes + n[w], spent_[w].passSeconds + own, spent_[w].steps + 1,
                     spent_[w].waitedSeconds + step - own};
      }
  }
  bool wantsOthers() { return balance_.wantsOthers(spent_, now_); }

  Balance balance_{8, 10};
  std::vector<double> seconds_{0.1, 0.1, 0.1};
  std::vector<Spent> spent_ = std::vector<Spent>(3);
  double now_ = 1000;
};

TEST_F(BalanceOfThree, EqualWorkersKeepEqualShares) {
  EXPECT_EQ(balance_.shares(), (Shares{3, 3, 2}));
  EXPECT_EQ(balance_.text(), "");
  for (int i = 0; i < 10; ++i) {
    EXPECT_FALSE(wantsOthers());
    train(11);
  }
}

TEST_F(BalanceOfThree, ASlowOneGetsFewerRanksBehindTheWindow) {
  seconds_[1] = 0.4;
  EXPECT_FALSE(wantsOthers());
  train(9);
  EXPECT_FALSE(wantsOthers()) << "the window is open";
  train(4);
  EXPECT_TRUE(wantsOthers());
  EXPECT_FALSE(wantsOthers()) << "it has been said";
  EXPECT_EQ(balance_.shares(), (Shares{3, 3, 2})) << "until the next generation";
  balance_.begin({0, 1, 2}, spent_);
  EXPECT_EQ(balance_.shares(), (Shares{4, 1, 3}));
  EXPECT_EQ(
      balance_.text(),
      "ranks of worker(s) 0, 1, 2: 4, 1, 3, before 3, 3, 2, as worker 1 takes 0.4 s for a rank and worker 0 0.1 s: "
      "a step should take 0.4 s instead of 1.2 s");
  for (int i = 0; i < 10; ++i) {
    EXPECT_FALSE(wantsOthers()) << "all is well now";
    train(21);
  }
}

// Ten seconds are less than ten steps.
TEST_F(BalanceOfThree, LongStepsAreWaitedFor) {
  seconds_ = {1, 4, 1};
  EXPECT_FALSE(wantsOthers());
  train(60);
  EXPECT_FALSE(wantsOthers());
  train(60);
  EXPECT_TRUE(wantsOthers());
}

// What was before the window does not count: worker 1 has been slow for an hour.
TEST_F(BalanceOfThree, WhoWasSlowOnceIsNotSlowForEver) {
  seconds_[1] = 0.4;
  train(3600);
  seconds_[1] = 0.1;
  EXPECT_FALSE(wantsOthers());
  train(11);
  EXPECT_FALSE(wantsOthers());
}

TEST_F(BalanceOfThree, WhoIsFastAgainGetsItsRanksBackAndWindowsBecomeLonger) {
  for (int change = 0; change < 8; ++change) {
    seconds_[1] = change % 2 ? 0.1 : 0.4;
    const double from = now_;
    while (!wantsOthers()) train(1);
    const double window = 10 << std::min(change, 5);
    EXPECT_GE(now_ - from, window) << change;
    EXPECT_LT(now_ - from, window + 3) << change;
    balance_.begin({0, 1, 2}, spent_);
    EXPECT_EQ(balance_.shares()[1] > 1, change % 2 == 1) << change;
  }
}

TEST_F(BalanceOfThree, SpeedsOutliveALossAndANewProcessIsTakenForAMeanOne) {
  seconds_ = {0.1, 0.4, 0.1};
  EXPECT_FALSE(wantsOthers());
  train(14);
  EXPECT_TRUE(wantsOthers());
  balance_.begin({0, 1, 2}, spent_);
  balance_.begin({0, 1}, {spent_[0], spent_[1]});
  EXPECT_EQ(balance_.shares(), (Shares{7, 1}));
  EXPECT_EQ(balance_.text(), "ranks of worker(s) 0, 1: 7, 1");
  spent_[1] = {};  // the slow one is lost, and its task runs elsewhere
  balance_.begin({0, 1, 2}, spent_);
  EXPECT_EQ(balance_.shares(), (Shares{3, 3, 2}));
  train(1);
  balance_.begin({0, 1}, {spent_[0], spent_[1]});
  EXPECT_EQ(balance_.shares(), (Shares{4, 4})) << "and the new process does not become the old one";
}

TEST(Balance, OneRankForEachAndNoWindowChangeNothing) {
  const std::vector<Spent> first(2), later{{1000, 100, 1000, 0}, {1000, 900, 1000, 0}};
  for (Balance b : {Balance(2, 1), Balance(8, 0)}) {
    b.begin({0, 1}, first);
    EXPECT_FALSE(b.wantsOthers(first, 0));
    EXPECT_FALSE(b.wantsOthers(later, 1000));
  }
}

}  // namespace
}  // namespace crema::worker
