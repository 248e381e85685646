// A run as the coordinator sees it until it starts, and a whole one: who joins, who is refused, who is missing.
#include "cluster/coordinator.h"

#include <gtest/gtest.h>

#include "support/training_fixture.h"
#include "worker/job.h"

namespace crema::worker {
namespace {

using crema::test::soon;
using test::ScriptedMember;
using test::TrainingTest;

TEST_F(TrainingTest, AWholeRun) {
  ranks = 4;
  train();
  EXPECT_TRUE(c_->events().front().has_listening());
  EXPECT_EQ(c_->events().front().listening().address(), c_->address());
  heardOf(0, 5);
  for (auto& w : workers_) w.sayFinished("same");
  for (auto& w : workers_) {
    EXPECT_TRUE(w.hear().has_bye());
    EXPECT_FALSE(c_->over()) << "it stays until all have hung up";
    w.hangUp();
  }
  EXPECT_TRUE(soon([&] { return c_->over(); }));
  EXPECT_FALSE(c_->error());
}

TEST_F(TrainingTest, StartNamesTheDataAddressesOfAll) {
  run();
  ScriptedMember second = joined(1), first = joined(0);
  const auto joins = c_->events();
  EXPECT_EQ(joins[1].joined().have(), 1);
  EXPECT_EQ(joins[2].joined().have(), 2);
  EXPECT_EQ(joins[2].joined().want(), 2);
  EXPECT_EQ(joins[2].joined().host(), "h0");
  first.sayReady(), second.sayReady();
  for (auto* w : {&first, &second}) {
    const auto start = w->hear().start();
    EXPECT_EQ(start.generation(), 1u);
    ASSERT_EQ(start.peers_size(), 2);
    EXPECT_EQ(start.peers(0), "127.0.0.1:7000");
    EXPECT_EQ(start.peers(1), "127.0.0.1:7001");
    w->hangUp();
  }
  EXPECT_TRUE(clock_.advanceUntil([&] { return c_->over(); }));
}

TEST_F(TrainingTest, WhoIsMissingWhenTheJoinTimeoutPasses) {
  workers = ranks = 3, options_.stepTimeout = 1000;
  run();
  workers_.push_back(joined(0)), workers_.push_back(joined(2));
  workers_[0].sayReady();
  EXPECT_FALSE(overWithin(59.5));
  clock_.advance(1);
  endsWith(ErrorKind::kTimeout,
           "3 workers wanted, 1 here; waited 60 s; missing: worker 1, worker 2 (joined, not ready). Free that many "
           "executor slots, or run fewer workers (the model is the same), or wait longer (-join_timeout; on Spark "
           "spark.crema.joinTimeout)");
}

TEST_F(TrainingTest, AHostThatPreparesRowsMayTakeLonger) {
  workers = ranks = 1, options_.stepTimeout = 1000;
  run();
  workers_.push_back(joined(0));
  const auto tells = [](const wire::Event& e) { return e.has_preparing(); };
  for (int minute = 1; minute <= 5; ++minute) {
    clock_.advance(50);
    workers_[0].sayBeat(0, 0, false, 0, minute);
    EXPECT_TRUE(soon([&] { return c_->count(tells) == static_cast<size_t>(minute); }));
    EXPECT_FALSE(c_->over());
  }
  clock_.advance(1);
  workers_[0].sayBeat(0, 0, false, 0, 6);  // within 5 s of the last one: not reported again
  EXPECT_FALSE(overWithin(59.5));
  EXPECT_EQ(c_->count(tells), 5u);
  clock_.advance(1);
  endsWith(ErrorKind::kTimeout,
           "1 workers wanted, 0 here; waited 60 s; missing: worker 0 (joined, not ready). Free that many executor "
           "slots, or run fewer workers (the model is the same), or wait longer (-join_timeout; on Spark "
           "spark.crema.joinTimeout)");
}

// A refused worker learns why, and the run goes on.
TEST_F(TrainingTest, AWorkerOfAnotherRunIsRefused) {
  run();
  const ScriptedMember here = joined(1);
  const auto refusal = [&](int w, const std::function<void(control::ToCoordinator::Hello&)>& change) {
    ScriptedMember other(c_->address(), w);
    other.hello.set_pid(55);
    change(other.hello);
    other.sayHello();
    return other.hearAbort();
  };
  EXPECT_EQ(refusal(1, [](auto&) {}), "peer: worker 1 is already here (host h1, pid 101)");
  EXPECT_EQ(refusal(0, [](auto& h) { h.set_job_digest("of another job"); }),
            "invalid: worker 0 has a different job than the coordinator: start all with the same solver, net, ranks "
            "and workers");
  EXPECT_EQ(refusal(0, [](auto& h) { h.set_version("0.0.9"); }),
            "invalid: version 0.0.9 cannot join version " CREMA_VERSION "; use one executable everywhere");
  for (const int w : {2, -2})
    EXPECT_EQ(refusal(w, [](auto&) {}),
              "invalid: there is no worker " + std::to_string(w) + "; this run has workers 0 to 1");
  EXPECT_FALSE(c_->over());
  const ScriptedMember rightful = joined(0);  // the place is still free
  stop_.raise(Error(ErrorKind::kStopped, "enough"));
  endsItself(ErrorKind::kStopped, "enough");
}

TEST_F(TrainingTest, OtherRecordsEndTheRunBeforeItStarts) {
  run();
  for (int w = 0; w < 2; ++w) workers_.push_back(joined(w));
  workers_[0].sayReady("weights", "100 records"), workers_[1].sayReady("weights", "99 records");
  endsWith(ErrorKind::kData,
           "worker 1 (rank 1, host h1, pid 101) reads other records than worker 0 (rank 0, host h0, pid 100): 99 "
           "records against 100 records; copy the same database to all machines");
}

TEST(JobDigest, IsOfWhatAllMustAgreeOnAndOfNothingElse) {
  wire::Job job;
  job.set_solver("solver"), job.set_ranks(4), job.set_workers(2);
  const std::string digest = jobDigest(job);
  wire::Job mine = job;
  mine.set_worker(1), mine.set_threads(7), mine.set_isa("avx2"), mine.set_train_source("/elsewhere");
  EXPECT_EQ(jobDigest(mine), digest);
  for (const auto& change : std::vector<std::function<void(wire::Job&)>>{[](auto& j) { j.set_solver("solve"); },
                                                                         [](auto& j) { j.set_ranks(5); },
                                                                         [](auto& j) { j.set_workers(3); }}) {
    wire::Job other = job;
    change(other);
    EXPECT_NE(jobDigest(other), digest);
  }
}

}  // namespace
}  // namespace crema::worker
