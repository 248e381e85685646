// What must be equal in all workers of a training, and how messages name them.
#include "worker/training.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "support/message_of.h"

namespace crema::worker {
namespace {

using cluster::Member;
using cluster::Roster;
using crema::test::messageOf;

class TrainingOfThree : public testing::Test {
 protected:
  TrainingOfThree() {
    for (int w = 0; w < 3; ++w) {
      Member& m = roster_.members[static_cast<size_t>(w)];
      m.hello.set_host("a 10.0.0.3"), m.hello.set_pid(70 + w);
      m.records = "100 records", m.digest = "weights";
    }
  }
  Training training_{5, 3, ""};  // worker floor(3 r / 5) owns rank r
  Roster roster_{3, training_.naming()};
};

TEST_F(TrainingOfThree, AWorkerIsNamedByItsRanks) {
  EXPECT_EQ(roster_.describe(0), "worker 0 (ranks 0 to 1, host a 10.0.0.3, pid 70)");
  EXPECT_EQ(roster_.describe(2), "worker 2 (rank 4, host a 10.0.0.3, pid 72)");
}

TEST_F(TrainingOfThree, OtherRecordsOrWeightsAreReportedWithBothWorkers) {
  const auto message = [&] { return messageOf([&] { training_.checkStart(roster_); }); };
  EXPECT_EQ(message(), "no error");
  roster_.members[2].digest = "others";
  EXPECT_EQ(message(),
            "worker 2 (rank 4, host a 10.0.0.3, pid 72) starts from other weights than worker 0 (ranks 0 to 1, "
            "host a 10.0.0.3, pid 70); give all workers the same -weights or -snapshot");
  roster_.members[2].records = "99 records";
  EXPECT_EQ(message(),
            "worker 2 (rank 4, host a 10.0.0.3, pid 72) reads other records than worker 0 (ranks 0 to 1, host a "
            "10.0.0.3, pid 70): 99 records against 100 records; copy the same database to all machines");
}

// The run begins without worker 0, which has not come.
TEST_F(TrainingOfThree, ThoseThatAreThereAreComparedWithEachOther) {
  const auto message = [&] { return messageOf([&] { training_.checkStart(roster_); }); };
  roster_.members[0] = Member();
  EXPECT_EQ(message(), "no error");
  roster_.members[2].digest = "others";
  EXPECT_EQ(message().find("worker 2 (rank 4, host a 10.0.0.3, pid 72) starts from other weights than worker 1 "), 0u)
      << message();
}

TEST_F(TrainingOfThree, OnlyProgressNamesTheSlowest) {
  training_.begin(roster_, {0, 1, 2});
  roster_.members[0].beat.set_compute_seconds(10), roster_.members[1].beat.set_compute_seconds(11.9);
  roster_.members[2].beat.set_compute_seconds(10);
  wire::Event progress, snapshot;
  progress.mutable_progress(), snapshot.mutable_snapshot();
  training_.complete(roster_, progress);
  EXPECT_EQ(progress.progress().slowest_worker(), -1) << "less than a fifth";
  roster_.members[1].beat.set_compute_seconds(12.1);
  training_.complete(roster_, progress), training_.complete(roster_, snapshot);
  EXPECT_EQ(progress.progress().slowest_worker(), 1);
  EXPECT_FALSE(snapshot.has_progress());
}

// What was computed before, by other processes and beside others, says nothing of who is slow now.
TEST_F(TrainingOfThree, TheSlowestIsOneOfTheGenerationAndSinceItBegan) {
  for (Member& m : roster_.members) m.beat.set_compute_seconds(50);
  roster_.members[1].beat.set_compute_seconds(0);  // a process that has just come
  training_.begin(roster_, {1, 2});
  wire::Event progress;
  progress.mutable_progress();
  roster_.members[1].beat.set_compute_seconds(3), roster_.members[2].beat.set_compute_seconds(53);
  roster_.members[0].beat.set_compute_seconds(90);  // it is not of this generation
  training_.complete(roster_, progress);
  EXPECT_EQ(progress.progress().slowest_worker(), -1);
  roster_.members[1].beat.set_compute_seconds(4);
  training_.complete(roster_, progress);
  EXPECT_EQ(progress.progress().slowest_worker(), 1);
}

TEST(Training, HasAtLeastARankForEachWorker) {
  EXPECT_THROW(Training(1, 2, ""), Error);
  EXPECT_THROW(Training(1, 0, ""), Error);
}

}  // namespace
}  // namespace crema::worker
