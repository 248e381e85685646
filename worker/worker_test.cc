// Whole runs: one model for any number of workers, and one error for all of them.
#include "worker/worker.h"

#include <gtest/gtest.h>

#include <set>

#include "support/worker_runs.h"

namespace crema::worker {
namespace {

using Outcome = crema::test::RunOutcome;
class WorkerTest : public crema::test::WorkerRuns {};

TEST_F(WorkerTest, AnyNumberOfWorkersTrainsTheSameModel) {
  std::set<std::string> models;
  for (const int workers : {1, 2, 3}) {
    const Outcome o = run(job(workers));
    endsWell(o);
    models.insert(model());
    ASSERT_EQ(o.done.size(), static_cast<size_t>(workers));
    for (const auto& e : o.done) EXPECT_EQ(e.done().iteration(), 12);
  }
  EXPECT_EQ(models.size(), 1u);
  EXPECT_GT(models.begin()->size(), 100u);
  endsWell(run(job(2, "base_lr: 0.04")));
  EXPECT_FALSE(models.count(model())) << "another run has another model";
}

TEST_F(WorkerTest, TheModelComesHome) {
  wire::Job j = job(2);
  j.set_model_home(folder_.file("home"));
  endsWell(run(j, folder_.file("home")));
  EXPECT_EQ(readFile(folder_.file("home")), model());
}

TEST_F(WorkerTest, AStopThatOneWorkerIsAskedForStopsAllInOneStep) {
  const Outcome o = run(job(2), "", nullptr, train::Request::kStop);
  endsWell(o);
  ASSERT_EQ(o.done.size(), 2u);
  EXPECT_EQ(o.done[0].done().iteration(), o.done[1].done().iteration());
  EXPECT_LT(o.done[0].done().iteration(), 12);
}

TEST_F(WorkerTest, OneThatCannotReadItsRecordsEndsTheRunForAll) {
  const std::string nowhere = folder_.file("nowhere");
  const Outcome o = run(job(2), "", [&](wire::Job& j) {
    if (j.worker() == 1) j.set_train_source(nowhere);
  });
  EXPECT_EQ(o.error.find("worker 1 (ranks 2 to 3, host "), 0u) << o.error;
  EXPECT_NE(o.error.find("failed in step 0: "), std::string::npos) << o.error;
  EXPECT_NE(o.error.find(nowhere), std::string::npos) << o.error;
  EXPECT_EQ(o.workers[0], o.error) << "the other one gets the same error";
  EXPECT_TRUE(o.done.empty());
}

TEST_F(WorkerTest, OtherRecordsAreFoundBeforeTheStart) {
  const std::string other = folder_.file("other");
  crema::test::writeLearnableRecords(other, 100);
  const Outcome o = run(job(2), "", [&](wire::Job& j) {
    if (j.worker() == 1) j.set_train_source(other);
  });
  EXPECT_NE(o.error.find(" reads other records than worker 0 "), std::string::npos) << o.error;
  EXPECT_NE(o.error.find("; copy the same database to all machines"), std::string::npos) << o.error;
  for (const auto& w : o.workers) EXPECT_EQ(w, o.error);
}

}  // namespace
}  // namespace crema::worker
