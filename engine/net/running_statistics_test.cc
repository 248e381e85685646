// Running statistics against the recurrence p <- f^n p + (sum over ranks of what n passes add) / R.
#include "net/running_statistics.h"

#include <gtest/gtest.h>

#include <cmath>

namespace crema::net {
namespace {

using layers::StatisticsMode;

// After 16 learnt values two statistics: 3 values with f = 0.5 and 2 values with f = 0.75.
class RunningStatisticsTest : public testing::Test {
 protected:
  void SetUp() override {
    statistics_.add(16, 3, 0.5), statistics_.add(32, 2, 0.75);
    statistics_.place(16, 32);
    for (int i = 0; i < 48; ++i) data_.mutableData<double>()[i] = i + 1, diff_.mutableDiff<double>()[i] = 100 + i;
  }
  std::vector<double> values() const { return {data_.data<double>(), data_.data<double>() + data_.count()}; }
  std::vector<double> addends() const { return {diff_.diff<double>(), diff_.diff<double>() + diff_.count()}; }

  StatisticsMode mode_ = StatisticsMode::kCollect;
  Blob data_{Shape{48}, DType::kFloat64}, diff_{Shape{48 + 16}, DType::kFloat64};
  RunningStatistics statistics_{mode_, data_, diff_};
};

TEST_F(RunningStatisticsTest, MoveByTheMeanOverRanksOnce) {
  const std::vector<double> before = values();
  statistics_.collect();
  const std::vector<double> cleared = addends();
  for (size_t i = 0; i < 48; ++i) EXPECT_EQ(cleared[i], i >= 16 ? 0 : 100 + static_cast<double>(i)) << i;
  std::vector<double> sum(64);
  for (size_t i = 0; i < sum.size(); ++i) sum[i] = static_cast<double>(i * i);
  statistics_.move(sum.data(), 4, 3);
  const std::vector<double> moved = values();
  for (size_t i = 0; i < 48; ++i) {
    const double kept = i >= 16 && i < 19 ? std::pow(0.5, 3) : i >= 32 && i < 34 ? std::pow(0.75, 3) : 1;
    EXPECT_DOUBLE_EQ(moved[i], kept == 1 ? before[i] : kept * before[i] + sum[i] / 4) << i;
  }
  statistics_.move(sum.data(), 4, 3);
  EXPECT_EQ(values(), moved) << "nothing was collected since";
}

TEST_F(RunningStatisticsTest, SavedValuesComeBack) {
  const std::vector<double> before = values();
  const Blob saved = statistics_.save();
  statistics_.collect();
  std::vector<double> sum(64, 8);
  statistics_.move(sum.data(), 1, 1);
  EXPECT_NE(values(), before);
  statistics_.restore(saved);
  EXPECT_EQ(values(), before);
}

TEST_F(RunningStatisticsTest, WherePassesMoveThemThereIsNothingToTakeUp) {
  statistics_.collect();
  statistics_.moveAtOnce();
  EXPECT_EQ(mode_, StatisticsMode::kMove);
  EXPECT_FALSE(statistics_.collecting());
  const std::vector<double> before = values(), sum(64, 8);
  statistics_.move(sum.data(), 1, 1);
  EXPECT_EQ(values(), before);
}

TEST_F(RunningStatisticsTest, FixedOnesStay) {
  statistics_.fix();
  const std::vector<double> before = values(), added = addends(), sum(64, 8);
  statistics_.collect();
  statistics_.moveAtOnce();
  statistics_.move(sum.data(), 1, 1);
  EXPECT_EQ(mode_, StatisticsMode::kFixed);
  EXPECT_EQ(values(), before);
  EXPECT_EQ(addends(), added);
}

}  // namespace
}  // namespace crema::net
