// A run that begins with some of its workers and lets others join, as its coordinator leads it.
#include <gtest/gtest.h>

#include "support/survival_fixture.h"

namespace crema::worker {
namespace {

using cluster::Replacement;
using crema::test::soon;

class GrowthTest : public test::SurvivalTest {
 protected:
  // Of three workers for eight ranks the run wants one to begin with, and this is there.
  void beginsWith(int w) {
    ranks = 8, workers = 3, options_.first = 1, options_.stepTimeout = 1000;
    run();
    workers_.push_back(joined(w));
    workers_[0].sayReady();
    hearsStart(0, 1, {w}, {-1});
  }
  size_t losses() {
    return c_->count([](const wire::Event& e) { return e.has_lost(); });
  }
};

TEST_F(GrowthTest, ARunThatMayGrowBeginsAtOnceAndOthersJoinBehindAStep) {
  beginsWith(2);
  workers_.push_back(joined(0));
  workers_[1].sayReady();
  hearsRegroup(0, 2, true);
  workers_.push_back(joined(1));
  workers_[2].sayReady();
  heardOf(2, 1000);  // before the step is over
  workers_[0].sayPaused(1, 4, {}, 3);
  for (const int w : {0, 1, 2}) hearsStart(w, 2, {0, 1, 2}, {-1, -1, 4});
  EXPECT_EQ(snapshot_, 3) << "2 leads no more, and brings it where it belongs";
  workers_[1].hangUp();
  for (const int w : {0, 2}) hearsRegroup(w, 3, false);
  workers_[0].sayPaused(2, 6, {}, 3), workers_[2].sayPaused(2, 6);
  for (const int w : {0, 2}) hearsStart(w, 3, {1, 2}, {6, 6});
  EXPECT_EQ(snapshot_, 3);
  workers_[0].hangUp();
  hearsRegroup(2, 4, false);
  workers_[2].sayPaused(3, 8);
  hearsStart(2, 4, {1}, {8});
  EXPECT_EQ(snapshot_, -1) << "nobody has it any more";
  endsHere();
}

// One whose machine lacks the data, or which is killed while it builds its net: the run does not need it, and does not pause.
TEST_F(GrowthTest, WhoFailsBeforeItHasJoinedEndsNothing) {
  beginsWith(0);
  for (const int w : {1, 2}) {
    workers_.push_back(joined(w));
    if (w == 1) workers_.back().sayFailed("there is no data.mdb here", "data", 0);
    if (w == 2) workers_.back().hangUp();
    EXPECT_TRUE(lost(w));
  }
  heardOf(0, 12);
  EXPECT_EQ(c_->count([](const wire::Event& e) { return e.has_regrouped(); }), 0u) << "nobody has stopped";
  endsHere();
}

// It is killed in the step behind which it would have joined. A run that ends with a loss waits then for what others say.
TEST_F(GrowthTest, WhoIsLostBeforeItHasJoinedLosesNoMessageOfOthers) {
  options_.replacement = Replacement::kFail;
  beginsWith(0);
  workers_.push_back(joined(1));
  workers_[1].sayReady();
  hearsRegroup(0, 2, true);
  workers_[1].hangUp();
  crema::test::settle();
  workers_[0].sayPaused(1, 4);
  hearsStart(0, 2, {0}, {4});
  endsHere();
}

// One of three is enough, and is on its way: it is joined, and not ready yet.
TEST_F(GrowthTest, WhoFailsBeforeTheRunHasBegunEndsNothingWhereOthersAreEnough) {
  ranks = 8, workers = 3, options_.first = 1, options_.stepTimeout = 1000;
  run();
  for (const int w : {0, 1}) workers_.push_back(joined(w));
  for (size_t time = 0; time < 3; ++time) {
    workers_[1].sayFailed("there is no data.mdb here", "data", 0);
    EXPECT_TRUE(soon([&] { return losses() == time + 1; }));
    comesAgain(1, false);
  }
  workers_[0].sayReady();
  hearsStart(0, 1, {0}, {-1});
  workers_[1].sayFailed("there is no data.mdb here", "data", 0);
  EXPECT_TRUE(soon([&] { return losses() == 4; }));
  heardOf(0, 12);
  endsHere();
}

TEST_F(GrowthTest, WhereAllFailBeforeTheRunHasBegunItEndsWithTheLastError) {
  ranks = 8, workers = 3, options_.first = 1, options_.stepTimeout = 1000;
  run();
  for (const int w : {0, 1}) workers_.push_back(joined(w));
  workers_[1].sayFailed("there is no data.mdb here", "data", 0);
  EXPECT_TRUE(lost(1));
  comesAgain(1, false);
  workers_[0].sayFailed("there is no data.mdb here", "data", 0);
  endsWith(ErrorKind::kData, "worker 0 (ranks 0 to 2, host h0, pid 100) failed in step 0: there is no data.mdb here");
}

TEST_F(GrowthTest, AGrowingRunWaitsForAsManyAsItHad) {
  ranks = 8, workers = 3, options_.first = 2, options_.stepTimeout = 1000;
  options_.replacement = Replacement::kWait, options_.replacementTimeout = 50;
  train();
  workers_[1].hangUp();
  hearsRegroup(0, 2, false);
  workers_[0].sayPaused(1, 7);
  EXPECT_FALSE(overWithin(40));
  while (workers_[0].spokenTo()) EXPECT_TRUE(workers_[0].hearAnything().has_alive());
  workers_[1] = joined(2);  // two again: the third place was never taken
  workers_[1].sayReady();
  hearsStart(0, 2, {0, 2}, {7, -1});
  endsHere();
}

TEST_F(GrowthTest, TooFewToBeginWithEndTheRunAfterTheJoinTimeout) {
  ranks = 8, workers = 3, options_.first = 2, options_.stepTimeout = 1000;
  run();
  workers_.push_back(joined(1));
  workers_[0].sayReady();
  EXPECT_FALSE(overWithin(59));
  clock_.advance(2);
  endsWith(ErrorKind::kTimeout,
           "2 workers wanted, 1 here; waited 60 s; missing: worker 0, worker 2. Free that many executor slots, or run "
           "fewer workers (the model is the same), or wait longer (-join_timeout; on Spark spark.crema.joinTimeout)");
}

TEST_F(GrowthTest, ARunMayBeginWithoutWorkerZero) {
  options_.least = 1, options_.stepTimeout = 1000;
  run();
  workers_.push_back(joined(1));
  workers_[0].sayReady();
  EXPECT_FALSE(overWithin(59.5));
  clock_.advance(1);
  const auto m = workers_[0].hear();
  ASSERT_TRUE(m.has_start()) << m.ShortDebugString();
  EXPECT_EQ(m.start().number(0), 1);
  EXPECT_EQ(m.start().member(), 0);
  endsHere();
}

}  // namespace
}  // namespace crema::worker
