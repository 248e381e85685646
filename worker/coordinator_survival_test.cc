// A run that goes on without lost workers, as its coordinator leads it: two scripted workers and a clock that the test moves.
#include <gtest/gtest.h>

#include <algorithm>

#include "support/training_fixture.h"
#include "worker/job.h"

namespace crema::worker {
namespace {

using cluster::Replacement;
using crema::test::soon;
using test::ScriptedMember;

class SurvivalTest : public test::TrainingTest {
 protected:
  SurvivalTest() { options_.replacement = Replacement::kGoOn; }
  bool lost(int w) {
    return c_->saw([w](const wire::Event& e) { return e.has_lost() && e.lost().worker() == w; });
  }
  // What worker w hears next: the next generation, which is to come at once or behind a step.
  void hearsRegroup(int w, uint32_t generation, bool atBorder) {
    const auto m = workers_[static_cast<size_t>(w)].hear();
    ASSERT_TRUE(m.has_regroup()) << m.ShortDebugString();
    EXPECT_EQ(m.regroup().generation(), generation);
    EXPECT_EQ(m.regroup().at_border(), atBorder);
  }
  // The next generation begins with these workers and their states.
  void hearsStart(int w, uint32_t generation, const std::vector<int>& numbers, const std::vector<int64_t>& iterations) {
    const auto m = workers_[static_cast<size_t>(w)].hear();
    ASSERT_TRUE(m.has_start()) << m.ShortDebugString();
    const auto& s = m.start();
    snapshot_ = s.snapshot();
    EXPECT_EQ(s.generation(), generation);
    EXPECT_EQ(std::vector<int>(s.number().begin(), s.number().end()), numbers);
    EXPECT_EQ(std::vector<int64_t>(s.iteration().begin(), s.iteration().end()), iterations);
    EXPECT_EQ(s.share_end(s.share_end_size() - 1), ranks) << "all ranks belong to somebody";
  }
  void comesAgain(int w) {
    ScriptedMember& m = workers_[static_cast<size_t>(w)];
    m = ScriptedMember(c_->address(), w);
    m.hello.set_attempt(++attempt_);
    m.sayHello();
    m.sayReady();
  }
  void endsHere() {
    stop_.raise(Error(ErrorKind::kStopped, "enough"));
    for (auto& w : workers_) w.hangUp();
    EXPECT_TRUE(clock_.advanceUntil([&] { return c_->over(); }));
  }
  // Of three workers for eight ranks the run wants one to begin with, and this is there.
  void beginsWith(int w) {
    ranks = 8, workers = 3, options_.first = 1, options_.stepTimeout = 1000;
    run();
    workers_.push_back(joined(w));
    workers_[0].sayReady();
    hearsStart(0, 1, {w}, {-1});
  }
  int attempt_ = 0;
  int64_t snapshot_ = -1;  // of the last Start
};

TEST_F(SurvivalTest, TheOthersGoOnAtOnceAndAnotherJoinsBehindAStep) {
  train();
  workers_[1].hangUp();
  EXPECT_TRUE(lost(1));
  hearsRegroup(0, 2, false);
  workers_[0].sayPaused(1, 7);
  hearsStart(0, 2, {0}, {7});
  heardOf(0, 7);
  EXPECT_TRUE(c_->saw([](const wire::Event& e) { return e.has_regrouped() && e.regrouped().workers() == 1; }));
  comesAgain(1);
  hearsRegroup(0, 3, true);
  EXPECT_FALSE(workers_[1].spokenTo() && workers_[1].hear().has_start());
  workers_[0].sayPaused(2, 9);
  hearsStart(0, 3, {0, 1}, {9, -1});
  hearsStart(1, 3, {0, 1}, {9, -1});
  heardOf(0, 9);
  EXPECT_TRUE(
      c_->saw([](const wire::Event& e) { return e.regrouped().came_size() == 1 && e.regrouped().came(0) == 1; }));
  for (auto& w : workers_) w.sayFinished("same");
  for (auto& w : workers_) EXPECT_TRUE(w.hear().has_bye()), w.hangUp();
  EXPECT_TRUE(clock_.advanceUntil([&] { return c_->over(); }));
  EXPECT_FALSE(c_->error());
}

TEST_F(SurvivalTest, AnotherIsWaitedForAndThenNotAnyMore) {
  options_.replacement = Replacement::kWait, options_.replacementTimeout = 8;
  train();
  workers_[1].hangUp();
  hearsRegroup(0, 2, false);
  workers_[0].sayPaused(1, 7);
  EXPECT_FALSE(overWithin(7.5));
  while (workers_[0].spokenTo()) EXPECT_TRUE(workers_[0].hearAnything().has_alive());
  clock_.advance(1);
  hearsStart(0, 2, {0}, {7});
  endsHere();
}

TEST_F(SurvivalTest, AnotherThatComesInTimeEndsTheWait) {
  options_.replacement = Replacement::kWait, options_.replacementTimeout = 8;
  train();
  workers_[1].hangUp();
  hearsRegroup(0, 2, false);
  workers_[0].sayPaused(1, 7);
  comesAgain(1);
  for (const int w : {0, 1}) hearsStart(w, 2, {0, 1}, {7, -1});
  endsHere();
}

TEST_F(SurvivalTest, AStateThatWasLostWithItsWorkerEndsTheRun) {
  train();
  workers_[1].hangUp();
  hearsRegroup(0, 2, false);
  workers_[0].sayPaused(1, 7);
  hearsStart(0, 2, {0}, {7});
  comesAgain(1);
  hearsRegroup(0, 3, true);
  workers_[0].sayPaused(2, 8);
  for (const int w : {0, 1}) hearsStart(w, 3, {0, 1}, {8, -1});
  workers_[0].hangUp();
  hearsRegroup(1, 4, false);
  workers_[1].sayPaused(3, -1);  // nothing had been taken over
  const std::string abort = workers_[1].hearAbort();
  EXPECT_EQ(abort.find("peer: worker 0 (rank 0, host h0, pid 100) was lost in step "), 0u) << abort;
  workers_[1].hangUp();
  EXPECT_TRUE(clock_.advanceUntil([&] { return c_->over(); }));
}

// Worker 1 takes four times as long for a rank.
TEST_F(SurvivalTest, ASlowWorkerGetsFewerRanksBehindAStep) {
  ranks = 8, rebalance = 20, options_.stepTimeout = 1000;
  train();
  const auto saysSpent = [&](int w, int64_t steps, double secondsPerRank) {
    control::ToCoordinator m;
    auto* s = m.mutable_beat()->mutable_spent();
    s->set_steps(steps), s->set_passes(4 * steps),
        s->set_pass_seconds(4.0 * static_cast<double>(steps) * secondsPerRank);
    m.mutable_beat()->set_iteration(steps), m.mutable_beat()->set_passes(steps);
    workers_[static_cast<size_t>(w)].say(m);
    heardOf(w, steps);
  };
  EXPECT_FALSE(overWithin(0.6)) << "the window opens";
  for (const int w : {0, 1}) saysSpent(w, 30, w ? 0.4 : 0.1);
  EXPECT_FALSE(overWithin(18));
  for (auto& w : workers_)
    while (w.spokenTo()) EXPECT_TRUE(w.hearAnything().has_alive());
  clock_.advance(3);
  for (const int w : {0, 1}) hearsRegroup(w, 2, true);
  clock_.advance(5);  // in which all compute as before
  workers_[1].sayPaused(1, 33);
  EXPECT_FALSE(overWithin(2));
  workers_[0].sayPaused(1, 33);
  for (auto& w : workers_) {
    const auto m = w.hear();
    ASSERT_TRUE(m.has_start()) << m.ShortDebugString();
    EXPECT_EQ(m.start().share_end(0), 7);
    EXPECT_EQ(m.start().share_end(1), 8);
    EXPECT_EQ(m.start().iteration(0), 33);
  }
  heardOf(0, 33);
  const auto goesOn = [](const wire::Event& e) { return e.has_regrouped(); };
  ASSERT_TRUE(c_->saw(goesOn));
  const auto all = c_->events();
  const std::string line = changeOf(*std::find_if(all.begin(), all.end(), goesOn));
  EXPECT_EQ(line.find("training goes on with 2 worker(s) from iteration 33, after 2."), 0u) << line;
  EXPECT_EQ(line.substr(line.find("; ") + 2),
            "ranks of worker(s) 0, 1: 7, 1, before 4, 4, as worker 1 takes 0.4 s for a rank and worker 0 0.1 s: a step "
            "should take 0.7 s instead of 1.6 s");
  endsHere();
}

TEST_F(SurvivalTest, ALossBehindTheModelIsTheEndOfTheRun) {
  train();
  workers_[0].sayFinished("same");
  heardOf(0, 10);
  workers_[1].hangUp();
  EXPECT_TRUE(workers_[0].hear().has_bye());
  workers_[0].hangUp();
  EXPECT_TRUE(clock_.advanceUntil([&] { return c_->over(); }));
  EXPECT_FALSE(c_->error());
}

TEST_F(SurvivalTest, WorkersThatCannotReachEachOtherDoNotGoRoundForEver) {
  train();
  for (uint32_t generation = 1; generation <= 3; ++generation) {
    workers_[1].sayPaused(generation, 7, {{0}});
    hearsRegroup(0, generation + 1, false), hearsRegroup(1, generation + 1, false);
    workers_[0].sayPaused(generation, 7);
    if (generation < 3)
      for (const int w : {0, 1}) hearsStart(w, generation + 1, {0, 1}, {7, 7});
  }
  const std::string abort = workers_[1].hearAbort();
  EXPECT_EQ(abort.find("peer: this worker was given up, and the run goes on without it: worker 1 (rank 1, host h1, pid "
                       "101) and others cannot reach each other, three times in a row; is a firewall between the "
                       "machines, or 127.0.0.1:7001 not an address of this one?"),
            0u)
      << abort;
  hearsStart(0, 4, {0}, {7});
  endsHere();
}

TEST_F(SurvivalTest, ARunThatMayGrowBeginsAtOnceAndOthersJoinBehindAStep) {
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
TEST_F(SurvivalTest, WhoFailsBeforeItHasJoinedEndsNothing) {
  beginsWith(0);
  for (const int w : {1, 2}) {
    workers_.push_back(joined(w));
    if (w == 1) workers_.back().sayFailed("there is no data.mdb here", "data", -1);
    if (w == 2) workers_.back().hangUp();
    EXPECT_TRUE(lost(w));
  }
  heardOf(0, 12);
  EXPECT_EQ(c_->count([](const wire::Event& e) { return e.has_regrouped(); }), 0u) << "nobody has stopped";
  endsHere();
}

TEST_F(SurvivalTest, AGrowingRunWaitsForAsManyAsItHad) {
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

TEST_F(SurvivalTest, TooFewToBeginWithEndTheRunAfterTheJoinTimeout) {
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

TEST_F(SurvivalTest, ARunMayBeginWithoutWorkerZero) {
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
