// A run that goes on without lost workers, as its coordinator leads it: two scripted workers and a clock that the test moves.
#include <gtest/gtest.h>

#include <algorithm>

#include "support/survival_fixture.h"
#include "worker/job.h"

namespace crema::worker {
namespace {

using cluster::Replacement;
using test::SurvivalTest;

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

// The other one writes a snapshot for longer than a replacement is waited for; that one is there, and its rows are on their way.
TEST_F(SurvivalTest, TheWaitForAnotherBeginsWhenAllHaveStopped) {
  options_.stepTimeout = 60, options_.replacementTimeout = 8, staged = true;
  train();
  workers_[1].hangUp();
  EXPECT_TRUE(lost(1));
  hearsRegroup(0, 2, false);
  comesAgain(1, false);
  int said = 0;
  const auto prepares = [&](int seconds) {
    for (const int end = said + seconds; said < end; ++said) {
      workers_[0].sayBeat(5, 100 + said);
      workers_[1].sayBeat(0, said, false, 0, said + 1);
      ASSERT_FALSE(overWithin(1)) << "after " << said << " s";
    }
  };
  prepares(10);
  workers_[0].sayPaused(1, 5);
  prepares(10);
  workers_[1].sayReady();
  hearsStart(0, 2, {0, 1}, {5, -1});
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

}  // namespace
}  // namespace crema::worker
