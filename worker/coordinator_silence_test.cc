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
    EXPECT_TRUE(lost(0, false)) << "its connection has ended, and its host needs nobody to end it";
  }
  bool lost(int worker, bool silent) {
    return c_->saw([=](const wire::Event& e) {
      return e.has_lost() && e.lost().worker() == worker && e.lost().silent() == silent;
    });
  }
  // Worker 1 is watched, although it has finished.
  void endsBy1() {
    EXPECT_FALSE(overWithin(9));
    clock_.advance(1.5);
    EXPECT_TRUE(clock_.advanceUntil([&] { return c_->over(); }));
    ASSERT_TRUE(c_->error());
    EXPECT_EQ(std::string(c_->error()->what()).find("worker 1 (rank 1, host h1, pid 101) has been silent for 1"), 0u)
        << c_->error()->what();
    EXPECT_TRUE(lost(1, true)) << "its host may be waiting for it";
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

// Its connection stays open, as that of a process that is stopped; the clock does not go on.
TEST_F(SilenceTest, TheEndWaitsForNobodyWhoIsSilent) {
  options_.replacement = cluster::Replacement::kFail;
  train();
  clock_.advance(6);
  heardOf(1, 7);
  clock_.advance(4.75);
  EXPECT_NE(workers_[1].hearAbort().find("worker 0 (rank 0, host h0, pid 100) has been silent for 11 s"),
            std::string::npos);
  EXPECT_FALSE(overWithin(0)) << "worker 1 may have something to say";
  workers_[1].hangUp();
  EXPECT_TRUE(crema::test::soon([&] { return c_->over(); }));
}

// Nobody computes since worker 0 waits for worker 1, though that is seen only ten seconds later.
TEST_F(SilenceTest, ThePauseBeginsWithTheLastPass) {
  train();
  for (const int w : {0, 1}) workers_[static_cast<size_t>(w)].sayBeat(7, 1), heardOf(w, 5 + w);
  clock_.advance(6);
  workers_[0].sayBeat(7, 1, true);
  heardOf(0, 7);
  clock_.advance(5);
  EXPECT_TRUE(c_->saw([](const wire::Event& e) { return e.lost().worker() == 1; }));
  EXPECT_TRUE(workers_[0].hear().has_regroup());
  workers_[0].sayPaused(1, 7);
  EXPECT_TRUE(workers_[0].hear().has_start());
  clock_.advance(0.25);
  heardOf(0, 8);
  const auto goesOn = [](const wire::Event& e) { return e.has_regrouped(); };
  ASSERT_TRUE(c_->saw(goesOn));
  const auto all = c_->events();
  EXPECT_EQ(changeOf(*std::find_if(all.begin(), all.end(), goesOn)),
            "training goes on with 1 worker(s) from iteration 8, after 11.25 s (0.25 s since the loss was seen)");
  stop_.raise(Error(ErrorKind::kStopped, "enough"));
  workers_[0].hangUp();
  EXPECT_TRUE(clock_.advanceUntil([&] { return c_->over(); }));
}

}  // namespace
}  // namespace crema::worker
