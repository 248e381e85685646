#include "train/trainer.h"

#include <gtest/gtest.h>

#include "support/solver_fixture.h"
#include "train/run.h"

namespace crema::train {
namespace {

class TrainerTest : public crema::test::SolverFixture {};

// Else who computes a hundred batches a step would count as one that hangs.
TEST_F(TrainerTest, EveryBatchIsProgress) {
  RunOptions o;
  o.solver = parameter(
      "max_iter: 2 iter_size: 3 test_iter: 4 test_interval: 2 test_initialization: false snapshot_after_train: false",
      5);
  o.ranks = 2, o.workers = 1, o.threads = 1, o.log = false;
  train::Run run = setUp(o);
  int beats = 0;
  TrainHooks hooks;
  hooks.beat = [&](int64_t) { ++beats; };
  Trainer(*run.solver, nullptr, run.train, hooks).run();
  EXPECT_EQ(beats, 2 * 2 * 3 + 4) << "two steps of two ranks, and a test";
}

}  // namespace
}  // namespace crema::train
