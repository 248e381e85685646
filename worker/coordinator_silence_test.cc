// Workers that fall silent while a run goes on without others, as its coordinator sees it: two scripted workers and a clock
// that the test moves.
#include <gtest/gtest.h>

#include <algorithm>

#include "support/training_fixture.h"
#include "worker/job.h"

namespace crema::worker {
namespace {

class SilenceTest : public test::TrainingTest {
 protected:
  SilenceTest() { options_.replacement = cluster::Replacement::kGoOn; }
  void loses0() {
    workers_[0].hangUp();
    EXPECT_TRUE(workers_[1].hear().has_regroup());
  }
  // Worker 1 is watched, although it has finished.
  void endsBy1() {
    EXPECT_FALSE(overWithin(9));
    clock_.advance(1.5);
    EXPECT_TRUE(clock_.advanceUntil([&] { return c_->over(); }));
    ASSERT_TRUE(c_->error());
    EXPECT_EQ(std::string(c_->error()->what()).find("worker 1 (rank 1, host h1, pid 101) has been silent for 1"), 0u)
        << c_->error()->what();
  }
};

// It is asked to compute again, as the lead was lost before the model was there: it is watched again.
TEST_F(SilenceTest, AFinishedWorkerThatFallsSilentIsGivenUpLikeAnyOther) {
  train();
  workers_[1].sayFinished("same");
  heardOf(1, 10);
  loses0();
  endsBy1();
}

// What it says of the generation that it is to leave does not end the watch.
TEST_F(SilenceTest, WhoFinishesBehindALossIsGivenUpLikeAnyOther) {
  train();
  loses0();
  workers_[1].sayFinished("same");
  heardOf(1, 10);
  endsBy1();
}

}  // namespace
}  // namespace crema::worker
