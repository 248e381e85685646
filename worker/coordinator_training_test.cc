// How a run ends once it has started: silence, failures, lost workers, an interrupt, states that differ, the model.
#include <gtest/gtest.h>

#include "base/file.h"
#include "support/shared_data.h"
#include "support/training_fixture.h"

namespace crema::worker {
namespace {

using crema::test::soon;
using test::ScriptedMember;
using test::TrainingTest;

const std::string kAgain = "run it again with -resume auto, which goes on from the last snapshot if there is one";

TEST_F(TrainingTest, ASilentWorkerIsGivenUpAfterTheStepTimeout) {
  train();
  clock_.advance(9.5);
  workers_[0].sayBeat(7, 7);
  heardOf(0, 7);
  EXPECT_FALSE(overWithin(0.4));
  clock_.advance(0.2);
  endsWith(ErrorKind::kTimeout,
           "worker 1 (rank 1, host h1, pid 101) has been silent for 10 s in step 7: stopped, "
           "overloaded or cut off. See its log; " +
               kAgain);
}

TEST_F(TrainingTest, AWorkerWhoseTrainingThreadHangsIsGivenUpLater) {
  train();
  for (int i = 0; i < 19; ++i) {  // 95 s: both workers report that they wait
    clock_.advance(5);
    workers_[0].sayBeat(7, 7, true), workers_[1].sayBeat(6, 3);
    heardOf(0, 100 + i), heardOf(1, 200 + i);
  }
  clock_.advance(4.5);
  heardOf(0, 300), heardOf(1, 301);
  EXPECT_FALSE(overWithin(5.2)) << "it moved with its first beat, 5 s after the start";
  clock_.advance(0.5);
  endsWith(ErrorKind::kTimeout,
           "worker 1 (rank 1, host h1, pid 101) has not finished a batch for 100 s in step 6; see its log. Where a "
           "batch takes so long, raise the step timeout, 10 of which are over (-step_timeout; on Spark "
           "spark.crema.stepTimeout)");
}

TEST_F(TrainingTest, AFailingWorkersErrorReachesAll) {
  train();
  workers_[1].sayFailed("record 7 is damaged\n  in layer 'data'", "data", 12);
  endsWith(ErrorKind::kData,
           "worker 1 (rank 1, host h1, pid 101) failed in step 12: record 7 is damaged\n  in layer 'data'");
}

TEST_F(TrainingTest, WhatOneMachineCannotDoMayBeTriedAgain) {
  train();
  workers_[0].sayFailed("the disk is full", "io", 3);
  endsWith(ErrorKind::kPeer, "worker 0 (rank 0, host h0, pid 100) failed in step 3: the disk is full");
}

TEST_F(TrainingTest, TheLostWorkerIsNamedAndNotTheOneThatMissesIt) {
  train();
  workers_[0].sayFailed("recv from worker 1: connection closed", "peer", 8);
  EXPECT_FALSE(overWithin(0.5)) << "it waits for a better error";
  workers_[1].hangUp();
  crema::test::settle();
  EXPECT_EQ(clock_.advanceUntil([&] { return c_->over(); }), true);
  const std::string message = c_->error()->what();
  EXPECT_EQ(message.find("worker 1 (rank 1, host h1, pid 101) was lost in step 0: recv from 127.0.0.1:"), 0u)
      << message;
  EXPECT_NE(message.find(": connection closed (the process ended or was killed). See the end of its log, on Spark its "
                         "executor's stderr; " +
                         kAgain),
            std::string::npos)
      << message;
  EXPECT_EQ(workers_[0].hearAbort(), "peer: " + message);
}

TEST_F(TrainingTest, TheOthersSayInWhichStepOneWasLost) {
  train();
  workers_[0].sayBeat(40, 40);
  heardOf(0, 40);
  workers_[1].hangUp();
  EXPECT_FALSE(overWithin(0.2)) << "it waits for the others' words";
  workers_[0].sayFailed("recv from worker 1: connection closed", "peer", 42);
  crema::test::settle();
  EXPECT_EQ(clock_.advanceUntil([&] { return c_->over(); }, 0.01), true);
  const std::string message = c_->error()->what();
  EXPECT_EQ(message.find("worker 1 (rank 1, host h1, pid 101) was lost in step 42: "), 0u) << message;
}

// A snapshot that is published is one to go on from, also where its report comes behind the loss that ends the run.
TEST_F(TrainingTest, ReportsBehindALossStillReachTheHost) {
  train();
  workers_[1].hangUp();
  EXPECT_FALSE(overWithin(0.1)) << "it waits for the others' words";
  control::ToCoordinator m;
  m.mutable_report()->mutable_snapshot()->set_iteration(20);
  workers_[0].say(m);
  EXPECT_TRUE(c_->saw([](const wire::Event& e) { return e.snapshot().iteration() == 20; }));
  EXPECT_FALSE(c_->over());
  clock_.advance(0.5);
  EXPECT_EQ(workers_[0].hearAbort().find("peer: worker 1 (rank 1, host h1, pid 101) was lost in step 0: "), 0u);
  m.mutable_report()->mutable_snapshot()->set_iteration(40);
  workers_[0].say(m);
  EXPECT_TRUE(c_->saw([](const wire::Event& e) { return e.snapshot().iteration() == 40; }));
  workers_[0].hangUp();
  EXPECT_TRUE(soon([&] { return c_->over(); })) << "the lost one is not waited for: the clock stands still";
}

TEST_F(TrainingTest, APeerThatNobodyElseMissesIsReportedAsItIs) {
  train();
  workers_[0].sayFailed("recv from worker 1: reset", "peer", 8);
  EXPECT_FALSE(overWithin(0.9)) << "the other one may still say more";
  EXPECT_TRUE(clock_.advanceUntil([&] { return c_->over(); }));
  endsWith(ErrorKind::kPeer, "worker 0 (rank 0, host h0, pid 100) failed in step 8: recv from worker 1: reset");
}

TEST_F(TrainingTest, OtherFinalStatesMakeTheModelUntrustworthy) {
  train();
  workers_[0].sayFinished("one"), workers_[1].sayFinished("another");
  endsWith(ErrorKind::kInternal,
           "worker 1 (rank 1, host h1, pid 101) ended with another state than worker 0 (rank 0, host h0, pid 100); "
           "the model must not be trusted. Please report this with the logs");
}

TEST_F(TrainingTest, OnceItHasFinishedAWorkerMayGo) {
  train();
  workers_[1].sayFinished("same");
  workers_[1].sayFailed("the host has ended", "stopped", 10);
  heardOf(1, 99);
  workers_[1].hangUp();
  clock_.advance(9);
  heardOf(0, 100);
  EXPECT_FALSE(overWithin(9)) << "nor may it be silent";
  heardOf(0, 101);
  workers_[0].sayFinished("same");
  EXPECT_TRUE(workers_[0].hear().has_bye());
  workers_[0].hangUp();
  EXPECT_TRUE(clock_.advanceUntil([&] { return c_->over(); }));
  EXPECT_FALSE(c_->error());
}

TEST_F(TrainingTest, AnInterruptEndsTheRunForAll) {
  train();
  stop_.raise(Error(ErrorKind::kStopped, "stopped by SIGINT"));
  endsWith(ErrorKind::kStopped, "stopped by SIGINT");
}

TEST_F(TrainingTest, WorkersThatHearNothingMoreAreWaitedForBriefly) {
  train();
  stop_.raise(Error(ErrorKind::kStopped, "enough"));
  for (auto& w : workers_) EXPECT_EQ(w.hearAbort(), "stopped: enough");
  EXPECT_FALSE(overWithin(1.9));
  clock_.advance(0.2);
  EXPECT_TRUE(soon([&] { return c_->over(); }));
}

TEST_F(TrainingTest, SignsOfLifeGoOutEverySecond) {
  workers = ranks = 1;
  run();
  ScriptedMember worker = joined(0);
  for (int second = 0; second < 5; ++second) {  // the first comes with the admission
    EXPECT_TRUE(worker.hearAnything().has_alive());
    EXPECT_FALSE(overWithin(0.9));
    EXPECT_FALSE(worker.spokenTo());
    clock_.advance(0.6);  // a turn of the coordinator's loop waits for half a second
  }
  EXPECT_TRUE(worker.hearAnything().has_alive());
  worker.hangUp();
  EXPECT_TRUE(clock_.advanceUntil([&] { return c_->over(); }));
}

TEST_F(TrainingTest, TheModelComesHomeInPieces) {
  const crema::test::TemporaryFolder folder;
  modelHome = folder.file("lenet.caffemodel");
  train();
  workers_[0].sayPiece("one ");
  workers_[0].sayPiece("two", 7);
  for (const bool whole : {false, true}) EXPECT_EQ(workers_[0].hear().kept().whole(), whole);
  EXPECT_EQ(readFile(modelHome), "one two");
  for (auto& w : workers_) w.sayFinished("same");
  for (auto& w : workers_) w.hangUp();
  EXPECT_TRUE(clock_.advanceUntil([&] { return c_->over(); }));
  EXPECT_FALSE(c_->error());
}

TEST_F(TrainingTest, APieceOfTheModelIsProgress) {
  const crema::test::TemporaryFolder folder;
  modelHome = folder.file("lenet.caffemodel");
  train();
  for (int i = 0; i < 24; ++i) {  // 120 s, in which the training thread finishes no batch
    clock_.advance(5);
    workers_[0].sayBeat(7, 3), workers_[1].sayBeat(7, 7, true);
    if (i == 12) {
      workers_[0].sayPiece("one ");
      EXPECT_EQ(workers_[0].hear().kept().bytes(), 4u);
    }
    heardOf(0, 100 + i), heardOf(1, 200 + i);
  }
  EXPECT_FALSE(overWithin(0.1));
  stop_.raise(Error(ErrorKind::kStopped, "enough"));
  endsWith(ErrorKind::kStopped, "enough");
}

TEST_F(TrainingTest, AModelThatWasNotAskedForEndsTheRun) {
  train();
  workers_[1].sayPiece("one", 3);
  endsWith(ErrorKind::kPeer,
           "the model is trained and not saved: worker 1 (rank 1, host h1, pid 101) sent a model that was not asked "
           "for. Mend that or name another place with -model, and run again");
}

TEST_F(TrainingTest, OnceItTrainsNoPreparationIsReported) {
  train();
  workers_[0].sayBeat(5, 5, false, 0, 3);
  heardOf(0, 5);
  EXPECT_EQ(c_->count([](const wire::Event& e) { return e.has_preparing(); }), 0u);
  stop_.raise(Error(ErrorKind::kStopped, "enough"));
  endsWith(ErrorKind::kStopped, "enough");
}

TEST_F(TrainingTest, TheSlowestWorkerIsNamedWhenItComputesAFifthLonger) {
  train();
  workers_[0].sayBeat(5, 5, false, 10);
  heardOf(0, 4);
  workers_[1].sayBeat(5, 5, false, 11.9);
  heardOf(1, 5), heardOf(0, 6);
  workers_[1].sayBeat(6, 6, false, 12.1);
  heardOf(1, 7), heardOf(0, 8);
  const auto all = c_->events();
  const auto slowest = [&](int64_t iteration) {
    return std::find_if(all.begin(), all.end(), [&](const auto& e) { return e.progress().iteration() == iteration; })
        ->progress()
        .slowest_worker();
  };
  EXPECT_EQ(slowest(4), 0) << "the other one has not computed yet";
  EXPECT_EQ(slowest(6), -1);
  EXPECT_EQ(slowest(8), 1);
  stop_.raise(Error(ErrorKind::kStopped, "enough"));
  endsWith(ErrorKind::kStopped, "enough");
}

}  // namespace
}  // namespace crema::worker
