// What a real worker says of itself when a generation fails, to a coordinator that the test plays; and a whole run, one of
// whose members nobody can reach.
#include <gtest/gtest.h>

#include "collective/mesh.h"
#include "support/coordinator_ends.h"
#include "support/surviving_worker.h"
#include "worker/joining.h"

namespace crema::worker {
namespace {

using crema::test::kClosed;
using crema::test::soon;
using SurvivingWorker = crema::test::SurvivingWorker;

// Else the run would begin anew, at iteration 0, when all others are lost.
TEST_F(SurvivingWorker, ANewcomerThatMeetsNobodyHasNoState) {
  begin();
  for (const uint32_t generation : {2u, 3u}) {
    start(generation, {5, -1});
    const auto p = next().message.paused();
    EXPECT_EQ(p.generation(), generation);
    EXPECT_EQ(p.iteration(), -1);
    ASSERT_EQ(p.unreached_size(), 1);
    EXPECT_EQ(p.unreached(0), 0);
    EXPECT_FALSE(p.ended());
    EXPECT_EQ(p.story().find("worker 0 cannot be reached; is a firewall between the two machines? "), 0u) << p.story();
  }
}

TEST_F(SurvivingWorker, AtTheBeginningAllHaveAState) {
  begin();
  start(1, {-1, -1});
  EXPECT_EQ(next().message.paused().iteration(), 0);
  start(2, {1, 0});  // the other one has done a step, in which it was lost
  EXPECT_EQ(next().message.paused().iteration(), 0) << "its own state is whole as long as no other one is here";
  startAlone(3, 0);
  EXPECT_TRUE(next().message.has_finished());
}

// Else the coordinator would take all who try to reach one member for members that hang, where ten step timeouts are over
// before they give it up.
TEST_F(SurvivingWorker, WhoConnectsWaitsForOthers) {
  begin();
  start(1, {-1, -1});
  int waiting = 0, busy = 0;
  beat_ = [&](const control::ToCoordinator::Beat& b) { ++(b.waiting() ? waiting : busy); };
  EXPECT_TRUE(next().message.has_paused());
  EXPECT_GT(waiting, 10) << "of the 30 seconds that it tries";
  EXPECT_GT(waiting, 2 * busy) << "before it begins, and behind it";
}

// Else a healthy run would give up a worker that computes for longer than twelve step timeouts, as in a test of its own.
TEST_F(SurvivingWorker, WhoWaitsForOneThatComputesGoesOnWaiting) {
  begin();
  const collective::Mesh zero = startBesideZero();
  int beats = 0;
  beat_ = [&](const control::ToCoordinator::Beat&) {
    control::ToMember m;
    m.mutable_alive()->set_advancing(++beats < 60);
    worker_->send(m, Deadline::after(1e6));
    clock_.advance(500);
  };
  const auto p = next().message.paused();
  ASSERT_EQ(p.unreached_size(), 1);
  EXPECT_EQ(p.story().find("no data from worker 0"), 0u) << p.story();
  EXPECT_GE(beats, 60 + 12000 / 500 - 2) << "so many heartbeats after the last one with somebody who computes";
}

// It would come again in every generation: it ends the run.
TEST_F(SurvivingWorker, ATimeoutOfItsOwnIsAnError) {
  leads_ = [] { throw Error(ErrorKind::kTimeout, "the file system is gone"); };
  begin();
  startAlone(1, -1);
  const auto in = next();
  ASSERT_TRUE(in.message.has_failed()) << in.message.ShortDebugString();
  EXPECT_EQ(in.message.failed().story().find("the file system is gone"), 0u) << in.message.failed().story();
  EXPECT_EQ(in.message.failed().kind(), "timeout");
}

// The host takes it and confirms nothing, as where its file system hangs: another worker's host may publish it.
TEST_F(SurvivingWorker, ASnapshotThatIsNeverPublishedIsAnErrorOfItsMachineWhileItTrains) {
  std::atomic<bool> asked{false};
  begin([&] { return asked.exchange(true) ? train::Request::kNone : train::Request::kSnapshot; },
        [this](wire::Job& j) {
          auto p = parameter("max_iter: 100000000 snapshot_after_train: false", 5);
          j.set_solver(p.SerializeAsString()), j.set_publishes(true), j.set_snapshot_prefix(folder_.file("snap"));
        });
  beat_ = [this](const control::ToCoordinator::Beat&) {
    control::ToMember m;
    m.mutable_alive();
    worker_->send(m, Deadline::after(1e6));
    clock_.advance(500);
  };
  startAlone(1, -1);
  const double since = monotonicSeconds();
  const auto in = next();
  ASSERT_TRUE(in.message.has_failed()) << in.message.ShortDebugString();
  EXPECT_NE(in.message.failed().story().find(" was not published within 10000 s; "), std::string::npos)
      << in.message.failed().story();
  EXPECT_EQ(in.message.failed().kind(), "io");
  EXPECT_GT(monotonicSeconds() - since, 9999);
}

// The first step takes 20 rows, and 5 are there: a survivor would be kept from going on by rows that may never come.
TEST_F(SurvivingWorker, AWaitForRowsEndsWithTheGeneration) {
  const auto all = crema::test::datums(folder_.file("db"));
  endsWell(run(ofRows(job(1), false), "", nullptr, train::Request::kNone, [&](const wire::Event& e, HostRows& rows) {
    if (!e.ByteSizeLong()) sendRows(rows, all, 0, 200);
  }));
  const std::string expected = model();
  send_ = [&](HostRows& rows) { sendRows(rows, all, 0, 5); };
  begin([] { return train::Request::kNone; }, [this](wire::Job& j) { j = ofRows(j, false); });
  startAlone(1, -1);
  ASSERT_TRUE(waitsForRows());
  control::ToMember m;
  m.mutable_regroup()->set_generation(2), m.mutable_regroup()->set_why("worker 0 was lost");
  worker_->send(m, Deadline::after(1e6));
  const auto in = next();
  ASSERT_TRUE(in.message.has_paused()) << in.message.ShortDebugString();
  EXPECT_EQ(in.message.paused().iteration(), 0);
  EXPECT_EQ(in.message.paused().story(), "");
  startAlone(2, 0);
  sendRows(*rows_, all, 5, 195);
  EXPECT_TRUE(next().message.has_finished());
  EXPECT_TRUE(model() == expected);
}

// Member 0 is there, hears all and says what it should, and its port is closed.
TEST_F(SurvivingWorker, ARunGoesOnWithoutAMemberThatNobodyReaches) {
  wire::Job all = job(3);
  all.set_replacement("continue"), all.set_step_timeout(1000);
  endsWell(run(job(2)));
  const std::string expected = model();
  cluster::test::RunningCoordinator coordinator(coordinatorOf(all), workOf(all));
  all.set_coordinator(coordinator.address());
  std::vector<std::string> errors(3);
  std::vector<std::thread> threads;
  for (const int w : {1, 2})
    threads.emplace_back([&, w, mine = all]() mutable {
      mine.set_worker(w);
      errors[static_cast<size_t>(w)] = runOne(mine, nullptr, train::Request::kNone, [](const wire::Event&) {});
    });
  HostRows rows(
      all, false, [](const wire::Event&) {}, &interrupt_);
  const train::Run unreachable = train::setUp(runOf(all, rows));
  cluster::test::ScriptedMember zero(coordinator.address(), 0);
  zero.hello.set_job_digest(jobDigest(all)), zero.hello.set_data_address(kClosed);
  zero.sayHello();
  zero.sayReady(stateDigest(*unreachable.solver), unreachable.solver->recordsRead());
  std::string abort;
  const auto listen = [&] {
    clock_.advance(0.05);
    if (!abort.empty() || !zero.spokenTo()) return;
    const auto m = zero.hearAnything();
    if (m.has_regroup()) zero.sayPaused(m.regroup().generation() - 1, 0);
    if (m.has_abort()) abort = m.abort().story();
  };
  EXPECT_TRUE(soon([&] { return coordinator.over(); }, listen));
  for (auto& t : threads) t.join();
  EXPECT_FALSE(coordinator.error()) << coordinator.error()->what();
  EXPECT_NE(abort.find("worker 0 (ranks 0 to 1"), std::string::npos) << abort;
  EXPECT_NE(abort.find("cannot reach each other, three times in a row"), std::string::npos) << abort;
  for (const int w : {1, 2}) EXPECT_EQ(errors[static_cast<size_t>(w)], "no error");
  EXPECT_TRUE(model() == expected);
}

}  // namespace
}  // namespace crema::worker
