// How a worker ends alone that is asked to, and whose others do not come.
#include <gtest/gtest.h>

#include <filesystem>

#include "cluster/patience.h"
#include "collective/mesh.h"
#include "support/surviving_worker.h"

namespace crema::worker {
namespace {

class Told : public crema::test::SurvivingWorker,
             public testing::WithParamInterface<std::pair<train::Request, const char*>> {
 protected:
  void endsWithASnapshot(const control::ToCoordinator& m) {
    ASSERT_TRUE(m.has_failed()) << m.ShortDebugString();
    EXPECT_EQ(m.failed().kind(), "stopped");
    EXPECT_EQ(m.failed().story().find(fmt::format("{} stopped at iteration 0 of 12; go on from there with -snapshot {}",
                                                  GetParam().second, folder_.file("snap_iter_0.solverstate"))),
              0u)
        << m.failed().story();
    EXPECT_TRUE(std::filesystem::exists(folder_.file("snap_iter_0.solverstate")));
  }
};
// SIGTERM of the worker, and what `crema train` makes of its own.
INSTANTIATE_TEST_SUITE_P(Stops, Told,
                         testing::Values(std::pair{train::Request::kEnd,
                                                   "a worker was told to end (SIGTERM), so training has"},
                                         std::pair{train::Request::kSnapshotAndStop,
                                                   "training was asked to end, and waited for workers that did not "
                                                   "come: it has"}),
                         [](const auto& p) { return p.index ? "Run" : "Worker"; });

// The signal comes in a step that fails, and a scheduler that ends this process leaves it seconds to wait for others.
TEST_P(Told, ATerminationOutlivesItsStep) {
  const auto all = crema::test::datums(folder_.file("db"));
  send_ = [&](HostRows& rows) { sendRows(rows, all, 0, 5); };  // of 20
  std::atomic<bool> told{false}, heard{false};
  const auto request = [&] {
    if (!told.exchange(false)) return train::Request::kNone;
    heard = true;
    return GetParam().first;
  };
  begin(request, [this](wire::Job& j) { j = ofRows(j, false), j.set_snapshot_prefix(folder_.file("snap")); });
  startAlone(1, -1);
  ASSERT_TRUE(waitsForRows());
  told = true;
  ASSERT_TRUE(clock_.advanceUntil([&] { return heard.load(); }));
  control::ToMember m;
  m.mutable_regroup()->set_generation(2), m.mutable_regroup()->set_why("worker 0 was lost");
  worker_->send(m, Deadline::after(1e6));
  const auto left = next();
  ASSERT_TRUE(left.message.has_paused()) << left.message.ShortDebugString();
  endsWithASnapshot(next().message);
}

// Worker 0 is there and says nothing, as one that is stopped. As long as the coordinator hears that anyone computes, all
// may end behind the step.
TEST_P(Told, AnExchangeInWhichNobodyGetsFurtherIsLeft) {
  begin([] { return GetParam().first; }, [this](wire::Job& j) { j.set_snapshot_prefix(folder_.file("snap")); });
  const collective::Mesh zero = startBesideZero();
  int beats = 0;
  double still = 0;
  beat_ = [&](const control::ToCoordinator::Beat&) {
    control::ToMember m;
    m.mutable_alive()->set_advancing(++beats < 10);
    worker_->send(m, Deadline::after(1e6));
    if (beats < 10) still = monotonicSeconds();
  };
  endsWithASnapshot(next().message);
  EXPECT_GE(beats, 10);
  EXPECT_GE(monotonicSeconds() - still, cluster::patience::kStill);
  EXPECT_LT(monotonicSeconds() - still, 10 * cluster::patience::kStill) << "the step timeout is 1000 s";
}

}  // namespace
}  // namespace crema::worker
