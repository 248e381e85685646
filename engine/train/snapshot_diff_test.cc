// snapshot_diff: a snapshot holds the gradient of its own step, also behind a step that was dropped, and of another worker.
#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "support/mesh_world.h"
#include "support/solver_fixture.h"
#include "train/run.h"

namespace crema::train {
namespace {

class SnapshotDiff : public crema::test::SolverFixture {
 protected:
  train::Run of(const std::string& prefix) {
    RunOptions o;
    o.solver = parameter("max_iter: 6 momentum: 0.9 snapshot_after_train: false snapshot_diff: true", 5);
    o.ranks = 2, o.threads = 1, o.log = false;
    train::Run run = train::setUp(o);
    run.train.snapshotPrefix = folder_.file(prefix);
    return run;
  }
  // The weights' gradients, as text.
  std::string gradientsIn(const std::string& prefix) {
    std::string all;
    const auto model = model::readBinary<caffe::NetParameter>(folder_.file(prefix) + "_iter_3.caffemodel");
    for (const auto& layer : model.layer())
      for (const auto& blob : layer.blobs()) {
        EXPECT_GT(blob.diff_size(), 0) << layer.name();
        for (const float d : blob.diff()) all += fmt::format("{:a} ", d);
      }
    return all;
  }
};

TEST_F(SnapshotDiff, IsOfTheStepWhoseWeightsItHas) {
  train::Run calm = of("calm"), disturbed = of("disturbed"), newcomer = of("newcomer");
  Trainer undisturbed(*calm.solver, nullptr, calm.train, {});
  undisturbed.iterate(3), undisturbed.snapshotAlone();
  const std::string want = gradientsIn("calm");

  TrainHooks hooks;  // in the fourth step, behind the first rank's pass
  hooks.request = [&] {
    if (disturbed.solver->iteration() == 3) throw Error(ErrorKind::kStopped, "lost");
    return Request::kNone;
  };
  Trainer first(*disturbed.solver, nullptr, disturbed.train, hooks);
  EXPECT_THROW(first.run(), Error);
  EXPECT_EQ(disturbed.solver->iteration(), 3);
  first.snapshotAlone();
  EXPECT_EQ(gradientsIn("disturbed"), want);

  crema::test::MeshWorld world(2);
  Trainer second(*newcomer.solver, nullptr, newcomer.train, {});
  const auto meet = [&](int w, Trainer& trainer) {
    collective::Mesh mesh(world.options(w, 2));
    trainer.changeWorkers(&mesh, {w, w + 1}, 2);
    trainer.catchUp(0, [](int worker) { return worker == 1; });
    trainer.leaveExchange();
  };
  std::thread other([&] { meet(1, second); });
  meet(0, first);
  other.join();
  second.snapshotAlone();
  EXPECT_EQ(gradientsIn("newcomer"), want);
}

}  // namespace
}  // namespace crema::train
