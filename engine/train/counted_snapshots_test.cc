// Snapshots that all workers of a run are asked for.
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "support/mesh_world.h"
#include "support/solver_fixture.h"
#include "train/run.h"

namespace crema::train {
namespace {

class CountedSnapshots : public crema::test::SolverFixture {
 protected:
  train::Run setUp(int worker) {
    RunOptions o;
    o.solver = parameter("max_iter: 6 snapshot_after_train: false ", 5);
    o.ranks = 4, o.worker = worker, o.workers = 2, o.threads = 1, o.log = false;
    train::Run run = train::setUp(o);
    run.train.snapshotPrefix = folder_.file("counted");
    return run;
  }
};

// All are asked for it, and hear of it in different steps; a newcomer begins with what the others have granted.
TEST_F(CountedSnapshots, AreTakenOnce) {
  crema::test::MeshWorld world(2);
  std::vector<int64_t> taken;
  const auto work = [&](int w) {
    train::Run run = setUp(w);
    TrainHooks hooks;
    hooks.snapshot = [&](int64_t iteration, const solver::SnapshotFiles&) { taken.push_back(iteration); };
    bool all = false;
    // Worker 1 hears of the first one a step later, and worker 0 of the second one; of the third only one hears.
    hooks.snapshots = [&]() -> int64_t {
      const int64_t done = run.solver->iteration();
      return all ? 3 : w == 0 ? (done >= 3 ? 2 : 1) : done >= 2 ? 2 : done >= 1 ? 1 : 0;
    };
    hooks.request = [&] { return run.solver->iteration() == 3 ? Request::kPause : Request::kNone; };
    Trainer trainer(*run.solver, nullptr, run.train, hooks);
    collective::MeshOptions options = world.options(w, 4);
    collective::Mesh first(options);
    trainer.changeWorkers(&first, {2 * w, 2 * w + 2}, 2);
    trainer.run();
    EXPECT_TRUE(trainer.paused());
    trainer.leaveExchange();
    all = w == 0;
    train::Run other = setUp(w);  // worker 1 is another process from here
    Trainer newcomer(*other.solver, nullptr, other.train, hooks);
    Trainer& second = w == 0 ? trainer : newcomer;
    options.generation = 2;
    collective::Mesh mesh(options);
    second.changeWorkers(&mesh, {2 * w, 2 * w + 2}, 2);
    second.catchUp(0, [](int worker) { return worker == 1; });
    second.run();
    second.leaveExchange();
  };
  std::thread other([&] { work(1); });
  work(0);
  other.join();
  EXPECT_EQ(taken, (std::vector<int64_t>{1, 3, 5}));
}

}  // namespace
}  // namespace crema::train
