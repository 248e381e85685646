// A coordinator with two scripted workers, and a clock that the test moves.
#pragma once
#include "support/coordinator_ends.h"
#include "support/settle.h"
#include "worker/training.h"

namespace crema::worker::test {

using cluster::test::RunningCoordinator;
using cluster::test::ScriptedMember;

// Two workers, join timeout 60 s, step timeout 10 s.
class TrainingTest : public testing::Test {
 protected:
  TrainingTest() {
    options_.secret = cluster::test::kToken, options_.jobDigest = cluster::test::kJobDigest;
    options_.joinTimeout = 60, options_.stepTimeout = 10;
  }
  void run() {
    options_.members = workers;
    auto work = std::make_unique<Training>(ranks, workers, modelHome, staged, rebalance);
    c_ = std::make_unique<RunningCoordinator>(options_, std::move(work), &stop_);
  }
  // Connects worker w; it has been admitted when this returns.
  ScriptedMember joined(int w) {
    ScriptedMember worker(c_->address(), w);
    worker.sayHello();
    EXPECT_TRUE(c_->saw([w](const wire::Event& e) { return e.has_joined() && e.joined().worker() == w; }));
    return worker;
  }
  // Both workers, started.
  void train() {
    run();
    for (int w = 0; w < 2; ++w) workers_.push_back(joined(w));
    for (auto& w : workers_) w.sayReady();
    EXPECT_TRUE(c_->saw([](const wire::Event& e) { return e.has_started(); }));
    for (auto& w : workers_) EXPECT_TRUE(w.hear().has_start());
  }
  // Returns when the coordinator has handled all messages of worker w.
  void heardOf(int w, int64_t iteration) {
    workers_[static_cast<size_t>(w)].sayProgress(iteration);
    EXPECT_TRUE(c_->saw([&](const wire::Event& e) { return e.progress().iteration() == iteration; }));
  }
  // Every worker receives Abort with the error that run() throws, and closes its connection.
  void endsWith(ErrorKind kind, const std::string& message) {
    for (auto& w : workers_) {
      EXPECT_EQ(w.hearAbort(), name(kind) + (": " + message));
      w.hangUp();
    }
    endsItself(kind, message);
  }
  void endsItself(ErrorKind kind, const std::string& message) {
    ASSERT_TRUE(clock_.advanceUntil([&] { return c_->over(); }));
    ASSERT_TRUE(c_->error());
    EXPECT_EQ(c_->error()->what(), message);
    EXPECT_EQ(c_->error()->kind(), kind);
  }
  bool overWithin(double seconds) {  // seconds of the clock, after all that has been said
    crema::test::settle();
    clock_.advance(seconds);
    crema::test::settle();
    return c_->over();
  }

  crema::test::HandClock clock_;
  Interrupt stop_;
  cluster::CoordinatorOptions options_;
  int ranks = 2, workers = 2;
  double rebalance = 0;
  bool staged = false;  // each worker has rows of its own
  std::string modelHome;
  std::vector<ScriptedMember> workers_;
  std::unique_ptr<RunningCoordinator> c_;
};

}  // namespace crema::worker::test
