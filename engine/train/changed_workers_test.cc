// How a trainer goes on with other workers, with an exchange that fails at a chosen moment, and how it leaves.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <thread>
#include <utility>
#include <vector>

#include "support/mesh_world.h"
#include "support/solver_fixture.h"
#include "train/run.h"

namespace crema::train {
namespace {

using collective::Bytes;
using collective::LostPeers;
using collective::RankRange;
using collective::Tag;

// Alone it has all ranks; beside another worker it only copies.
class ScriptedExchange : public collective::Exchange {
 public:
  explicit ScriptedExchange(int worker = 0, int workers = 1) : worker_(worker), workers_(workers) {}
  int worker() const override { return worker_; }
  int workers() const override { return workers_; }
  const std::vector<RankRange>& shares() const override { return shares_; }
  void allReduce(const std::vector<const float*>& pieces, float* total, int64_t count, const Tag&) override {
    if (failing) throw LostPeers(ErrorKind::kPeer, {1}, "lost");
    if (pieces[0] != total) std::copy_n(pieces[0], count, total);
  }
  void copy(const std::vector<Bytes>& of, const std::function<bool(int)>&, const Tag&) override {
    if (copied) copied(of);
  }
  void abandon() override {}
  void setWaiting(bool w) override { waiting = w; }

  bool failing = false, waiting = false;
  std::function<void(const std::vector<Bytes>&)> copied;

 private:
  int worker_, workers_;
  std::vector<RankRange> shares_{{0, 1}};
};

class ChangedWorkers : public crema::test::SolverFixture {
 protected:
  train::Run setUp(const std::string& more, int ranks = 1, int worker = 0, int workers = 1) {
    RunOptions o;
    o.solver = parameter("max_iter: 6 momentum: 0.9 average_loss: 3 snapshot_after_train: false " + more, 5);
    if (sequences_) *o.solver.mutable_net_param() = sequenceNet();
    o.ranks = ranks, o.worker = worker, o.workers = workers, o.threads = 1, o.log = false;
    return train::setUp(o);
  }
  // An LSTM that goes on from batch to batch.
  caffe::NetParameter sequenceNet() const {
    return model::parseText<caffe::NetParameter>(
        "layer { name: 'data' type: 'Data' top: 'data' top: 'label' transform_param { scale: 0.0078125 } "
        "data_param { source: '" +
            folder_.file("db") +
            "' batch_size: 5 backend: LMDB } } layer { name: 'cont' type: 'DummyData' top: 'cont' dummy_data_param { "
            "shape { dim: 5 dim: 1 } data_filler { value: 1 } } } layer { name: 'lstm' type: 'LSTM' bottom: 'data' "
            "bottom: 'cont' top: 'h' recurrent_param { num_output: 6 weight_filler { type: 'uniform' min: -0.2 max: "
            "0.2 } } } layer { name: 'flat' type: 'Flatten' bottom: 'h' top: 'flat' } layer { name: 'ip' type: "
            "'InnerProduct' bottom: 'flat' top: 'ip' inner_product_param { num_output: 4 weight_filler { type: "
            "'xavier' } } } layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'ip' bottom: 'label' top: 'loss' }",
        "net");
  }
  static std::string bytesOf(Blob& b) {
    return {reinterpret_cast<const char*>(b.data<float>()), static_cast<size_t>(b.count()) * sizeof(float)};
  }
  static std::string stateOf(train::Run& run) {
    return bytesOf(run.solver->net().flatData()) + bytesOf(run.solver->history());
  }
  // What a worker that is ahead sends, part by part; then it is lost, before part `until`.
  static auto sender(train::Run& ahead, int until) {
    auto part = std::make_shared<int>(0);
    return [part, &ahead, until](const std::vector<Bytes>& of) {
      if (*part == until) throw LostPeers(ErrorKind::kPeer, {0}, "lost");
      const std::vector<double> position = ahead.solver->position();
      const std::string all[] = {bytesOf(ahead.solver->net().flatData()),
                                 bytesOf(ahead.solver->history()),
                                 "",
                                 {reinterpret_cast<const char*>(position.data()), position.size() * sizeof(double)},
                                 std::string(sizeof(int64_t), '\0')};
      const std::string& bytes = all[(*part)++];
      ASSERT_EQ(of[0].size, bytes.size());
      std::copy(bytes.begin(), bytes.end(), of[0].at);
    };
  }

  bool sequences_ = false;
};

// The last that is left may be the one that was taking over the state of the one that is lost.
TEST_F(ChangedWorkers, AStateIsWholeUntilTheOtherOneIsThere) {
  train::Run ahead = setUp(""), mine = setUp("");
  Trainer(*ahead.solver, nullptr, ahead.train, {}).iterate(4);
  Trainer trainer(*mine.solver, nullptr, mine.train, {});
  mine.solver->settings().set_max_iter(3), trainer.run();
  mine.solver->settings().set_max_iter(6);
  const std::string before = stateOf(mine);
  for (int until = 0; until < 5; ++until) {
    ScriptedExchange exchange(1, 2);
    exchange.copied = [&exchange, send = sender(ahead, until)](const std::vector<Bytes>& of) {
      EXPECT_TRUE(exchange.waiting) << "for the other one, which may take long";
      send(of);
    };
    trainer.changeWorkers(&exchange, {0, 1}, 2);
    EXPECT_THROW(trainer.catchUp(0, [](int w) { return w == 1; }), LostPeers);
    EXPECT_FALSE(exchange.waiting) << until;
    trainer.leaveExchange();
    EXPECT_EQ(mine.solver->iteration(), 3) << until;
    EXPECT_TRUE(stateOf(mine) == before) << until;
  }
  ScriptedExchange exchange(1, 2);
  exchange.copied = sender(ahead, 5);
  trainer.changeWorkers(&exchange, {0, 1}, 2);
  trainer.catchUp(0, [](int w) { return w == 1; });
  EXPECT_EQ(mine.solver->iteration(), 4);
  EXPECT_TRUE(stateOf(mine) == stateOf(ahead));
  trainer.leaveExchange();
}

TEST_F(ChangedWorkers, AStepThatIsDoneAnewHasTheLossOfOneThatIsNot) {
  sequences_ = true;
  const auto losses = [this](int lostIn) {
    train::Run run = setUp("");
    EXPECT_GT(run.solver->net().carriedBytes(), 0u);
    std::map<int64_t, double> all;
    TrainHooks hooks;
    hooks.progress = [&](const Progress& p) { all[p.iteration] = p.loss; };
    ScriptedExchange exchange;
    int copies = 0;
    exchange.copied = [&](const std::vector<Bytes>&) {
      if (copies++ == lostIn) throw LostPeers(ErrorKind::kPeer, {1}, "lost");
    };
    Trainer trainer(*run.solver, &exchange, run.train, hooks);
    if (lostIn >= 0) {
      EXPECT_THROW(trainer.run(), LostPeers);
      EXPECT_EQ(run.solver->iteration(), lostIn);
      trainer.changeWorkers(&exchange, {0, 1}, 1);
    }
    trainer.run();
    trainer.leaveExchange();
    return all;
  };
  const auto calm = losses(-1);
  EXPECT_EQ(calm.size(), 6u);
  EXPECT_EQ(losses(2), calm);
}

TEST_F(ChangedWorkers, WhoHasLostOthersWaitsForThemNoMore) {
  train::Run run = setUp("");
  ScriptedExchange exchange;
  Trainer trainer(*run.solver, &exchange, run.train, {});
  exchange.failing = true;
  EXPECT_THROW(trainer.run(), LostPeers);
  EXPECT_FALSE(exchange.waiting) << "in the agreement to begin";
  exchange.failing = false;
  TrainHooks hooks;
  hooks.beat = [&](int64_t) { exchange.failing = true; };
  Trainer later(*run.solver, &exchange, run.train, hooks);
  EXPECT_THROW(later.run(), LostPeers);
  EXPECT_FALSE(exchange.waiting) << "in the sum of a step";
  trainer.leaveExchange(), later.leaveExchange();
}

// What ranks carry from batch to batch goes with them, whichever worker has them next.
TEST_F(ChangedWorkers, RanksMoveBetweenWorkersThatStay) {
  sequences_ = true;
  train::Run alone = setUp("", 4);
  Trainer(*alone.solver, nullptr, alone.train, {}).run();
  const std::vector<std::vector<RankRange>> divisions{{{0, 2}, {2, 4}}, {{0, 3}, {3, 4}}, {{0, 1}, {1, 4}}};
  crema::test::MeshWorld world(2);
  std::vector<std::string> states(2);
  std::vector<int64_t> passes(2);
  const auto work = [&](int w) {
    const auto me = static_cast<size_t>(w);
    train::Run run = setUp("", 4, w, 2);
    TrainHooks hooks;
    hooks.request = [&] { return run.solver->iteration() < 4 ? Request::kPause : Request::kNone; };
    double waited = 0;
    hooks.spent = [&](const Spent& s) {
      passes[me] = s.passes;
      EXPECT_GT(s.waitedSeconds, waited) << "since the trainer was made, whatever exchanges it had";
      waited = s.waitedSeconds;
    };
    Trainer trainer(*run.solver, nullptr, run.train, hooks);
    for (uint32_t generation = 1; run.solver->iteration() < 6; ++generation) {
      collective::MeshOptions options = world.options(w, 4);
      options.generation = generation, options.shares = divisions[generation % divisions.size()];
      collective::Mesh mesh(options);
      trainer.changeWorkers(&mesh, options.shares[me], 2);
      trainer.run();
      trainer.leaveExchange();
    }
    states[me] = stateOf(run);
  };
  std::thread other([&] { work(1); });
  work(0);
  other.join();
  EXPECT_TRUE(states[0] == stateOf(alone));
  EXPECT_TRUE(states[1] == stateOf(alone));
  EXPECT_EQ(passes, (std::vector<int64_t>{3 + 1 + 2 + 3 + 2 * 1, 1 + 3 + 2 + 1 + 2 * 3}))
      << "four times one step, then two";
}

// A scheduler ends all: each worker has two ranks, and hears of it in the pass of its second one.
TEST_F(ChangedWorkers, WhereAllWorkersLeaveTheRunEndsInsteadWithASnapshot) {
  crema::test::MeshWorld world(2);
  const auto work = [&](int w) {
    train::Run run = setUp("", 4, w, 2);
    run.train.snapshotPrefix = folder_.file("leave");
    collective::Mesh mesh(world.options(w, 4));
    int polls = 0;  // before the first step, and behind each rank
    TrainHooks hooks;
    hooks.request = [&] { return ++polls >= 3 ? Request::kLeave : Request::kNone; };
    Trainer trainer(*run.solver, &mesh, run.train, hooks);
    trainer.run();
    EXPECT_TRUE(trainer.stopped() && trainer.ended() && !trainer.paused()) << w;
    EXPECT_EQ(run.solver->iteration(), 1) << w;
    trainer.leaveExchange();
  };
  std::thread other([&] { work(1); });
  work(0);
  other.join();
  EXPECT_TRUE(fileExists(folder_.file("leave_iter_1.solverstate")));
}

TEST_F(ChangedWorkers, TerminatedBehindTheLastStepItStillTests) {
  train::Run run = setUp("test_iter: 2 test_interval: 6 test_initialization: false ");
  run.train.snapshotPrefix = folder_.file("last");
  std::vector<int64_t> tested;
  TrainHooks hooks;
  hooks.request = [&] { return run.solver->iteration() >= 5 ? Request::kLeave : Request::kNone; };
  hooks.test = [&](int64_t iteration, int, const std::vector<TestOutput>&) { tested.push_back(iteration); };
  Trainer trainer(*run.solver, nullptr, run.train, hooks);
  trainer.run();
  EXPECT_FALSE(trainer.stopped() || trainer.ended() || trainer.paused());
  EXPECT_EQ(tested, std::vector<int64_t>{6});
}

// A new lead that owes a snapshot asks for it where it begins: it is taken there, and not behind the next step as well.
TEST_F(ChangedWorkers, ASnapshotThatIsOwedIsTakenOnce) {
  train::Run run = setUp("snapshot: 3 ");
  run.train.snapshotPrefix = folder_.file("once");
  std::vector<int64_t> taken;
  bool owed = false;
  TrainHooks hooks;
  hooks.snapshot = [&](int64_t iteration, const solver::SnapshotFiles&) { taken.push_back(iteration); };
  hooks.request = [&] { return std::exchange(owed, false) ? Request::kSnapshot : Request::kPause; };
  Trainer trainer(*run.solver, nullptr, run.train, hooks);
  for (int64_t step = 1; step <= 3; ++step) {
    owed = step == 2;
    trainer.run();
    EXPECT_EQ(run.solver->iteration(), step);
    trainer.leaveExchange(), trainer.changeWorkers(nullptr, {0, 1}, 1);
  }
  EXPECT_EQ(taken, (std::vector<int64_t>{1, 3}));
}

// As where who led is lost behind the last step.
TEST_F(ChangedWorkers, AFinalSnapshotThatIsKnownIsNotTakenAgain) {
  for (const int64_t known : {4, 6}) {
    train::Run run = setUp("snapshot: 4 ");
    run.train.snapshotPrefix = folder_.file("final");
    size_t taken = 0;
    TrainHooks hooks;
    hooks.snapshot = [&](int64_t, const solver::SnapshotFiles&) { ++taken; };
    Trainer trainer(*run.solver, nullptr, run.train, hooks);
    trainer.run(), trainer.leaveExchange(), trainer.changeWorkers(nullptr, {0, 1}, 1);
    run.solver->settings().set_snapshot_after_train(true);
    trainer.knowsSnapshot(known);
    trainer.run();
    EXPECT_EQ(taken, known == 6 ? 1u : 2u);
  }
}

TEST_F(ChangedWorkers, WhereOneWorkerLeavesTheOthersPauseForIt) {
  crema::test::MeshWorld world(2);
  const auto work = [&](int w) {
    train::Run run = setUp("", 4, w, 2);
    collective::Mesh mesh(world.options(w, 4));
    TrainHooks hooks;
    hooks.request = [&] { return w == 1 ? Request::kLeave : Request::kNone; };
    Trainer trainer(*run.solver, &mesh, run.train, hooks);
    trainer.run();
    EXPECT_TRUE(trainer.paused() && !trainer.stopped()) << w;
    EXPECT_EQ(run.solver->iteration(), 1) << w;
    trainer.leaveExchange();
  };
  std::thread other([&] { work(1); });
  work(0);
  other.join();
}

}  // namespace
}  // namespace crema::train
