// Whole runs in one process: real workers in threads, a real coordinator, a small net, the machine's clock.
#include "cluster/worker.h"

#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>
#include "base/mutex.h"

#include "base/file.h"
#include "cluster/coordinator.h"
#include "support/hand_clock.h"
#include "support/message_of.h"
#include "support/solver_fixture.h"

namespace crema::cluster {
namespace {

constexpr int kRanks = 4;

struct Outcome {
  std::string error = "no error";  // of the coordinator
  std::vector<std::string> workers;
  std::vector<wire::Event> events, done;  // events of the coordinator; of the workers
};

class WorkerTest : public crema::test::SolverFixture {
 protected:
  wire::Job job(int workers, const std::string& more = "") {
    wire::Job job;
    auto p = parameter("max_iter: 12 momentum: 0.9 display: 4 snapshot_after_train: false " + more, 5);
    job.set_solver(p.SerializeAsString());
    job.set_ranks(kRanks), job.set_workers(workers), job.set_threads(1);
    job.set_token("the token of this cluster"), job.set_host("127.0.0.1"), job.set_coordinator_listens(true);
    job.set_join_timeout(30), job.set_step_timeout(30);
    job.set_model(folder_.file("model"));
    return job;
  }
  using Change = std::function<void(wire::Job&)>;  // applied to one worker's job
  static Outcome run(const wire::Job& job, const std::string& modelHome = "", const Change& change = nullptr,
                     train::Request request = train::Request::kNone) {
    CoordinatorOptions o;
    o.token = job.token(), o.ranks = job.ranks(), o.workers = job.workers(), o.modelHome = modelHome;
    o.joinTimeout = job.join_timeout(), o.stepTimeout = job.step_timeout(), o.jobDigest = jobDigest(job);
    Outcome outcome;
    outcome.workers.resize(static_cast<size_t>(job.workers()));
    std::atomic<int> joined{0};
    auto coordinator = std::make_unique<Coordinator>(o, [&](const wire::Event& e) {
      outcome.events.push_back(e);
      joined += e.has_joined();
    });
    const std::string address = coordinator->address();
    Mutex mutex;
    std::vector<std::thread> threads;
    for (int w = 0; w < job.workers(); ++w)
      threads.emplace_back([&, w, mine = job]() mutable {
        EXPECT_TRUE(crema::test::soon([&] { return joined >= w; })) << "one that fails early would keep out the next";
        mine.set_worker(w), mine.set_coordinator(address);
        if (change) change(mine);
        const auto emit = [&](const wire::Event& e) {
          const MutexLock lock(mutex);
          outcome.done.push_back(e);
        };
        Interrupt interrupt;
        HostRows rows(mine, false, emit, &interrupt);
        const auto asks = [&, w] { return w == job.workers() - 1 ? request : train::Request::kNone; };
        outcome.workers[static_cast<size_t>(w)] =
            crema::test::messageOf([&] { runWorker(mine, rows, emit, asks, interrupt); });
      });
    outcome.error = crema::test::messageOf([&] { coordinator->run(nullptr); });
    coordinator.reset();  // as its process ends
    for (auto& t : threads) t.join();
    return outcome;
  }
  std::string model() const { return readFile(folder_.file("model")); }
  static void endsWell(const Outcome& o) {
    EXPECT_EQ(o.error, "no error");
    for (const auto& w : o.workers) EXPECT_EQ(w, "no error");
  }
};

TEST_F(WorkerTest, AnyNumberOfWorkersTrainsTheSameModel) {
  std::set<std::string> models;
  for (const int workers : {1, 2, 3}) {
    const Outcome o = run(job(workers));
    endsWell(o);
    models.insert(model());
    ASSERT_EQ(o.done.size(), static_cast<size_t>(workers));
    for (const auto& e : o.done) EXPECT_EQ(e.done().iteration(), 12);
  }
  EXPECT_EQ(models.size(), 1u);
  EXPECT_GT(models.begin()->size(), 100u);
  endsWell(run(job(2, "base_lr: 0.04")));
  EXPECT_FALSE(models.count(model())) << "another run has another model";
}

TEST_F(WorkerTest, TheModelComesHome) {
  wire::Job j = job(2);
  j.set_model_home(folder_.file("home"));
  endsWell(run(j, folder_.file("home")));
  EXPECT_EQ(readFile(folder_.file("home")), model());
}

TEST_F(WorkerTest, AStopThatOneWorkerIsAskedForStopsAllInOneStep) {
  const Outcome o = run(job(2), "", nullptr, train::Request::kStop);
  endsWell(o);
  ASSERT_EQ(o.done.size(), 2u);
  EXPECT_EQ(o.done[0].done().iteration(), o.done[1].done().iteration());
  EXPECT_LT(o.done[0].done().iteration(), 12);
}

TEST_F(WorkerTest, OneThatCannotReadItsRecordsEndsTheRunForAll) {
  const std::string nowhere = folder_.file("nowhere");
  const Outcome o = run(job(2), "", [&](wire::Job& j) {
    if (j.worker() == 1) j.set_train_source(nowhere);
  });
  EXPECT_EQ(o.error.find("worker 1 (ranks 2 to 3, host "), 0u) << o.error;
  EXPECT_NE(o.error.find("failed in step 0: "), std::string::npos) << o.error;
  EXPECT_NE(o.error.find(nowhere), std::string::npos) << o.error;
  EXPECT_EQ(o.workers[0], o.error) << "the other one gets the same error";
  EXPECT_TRUE(o.done.empty());
}

TEST_F(WorkerTest, OtherRecordsAreFoundBeforeTheStart) {
  const std::string other = folder_.file("other");
  crema::test::writeLearnableRecords(other, 100);
  const Outcome o = run(job(2), "", [&](wire::Job& j) {
    if (j.worker() == 1) j.set_train_source(other);
  });
  EXPECT_NE(o.error.find(" reads other records than worker 0 "), std::string::npos) << o.error;
  EXPECT_NE(o.error.find("; copy the same database to all machines"), std::string::npos) << o.error;
  for (const auto& w : o.workers) EXPECT_EQ(w, o.error);
}

}  // namespace
}  // namespace crema::cluster
