// Whole runs in one process: real workers in threads, a real coordinator, a small net, the machine's clock.
#pragma once
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/mutex.h"
#include "cluster/coordinator.h"
#include "support/hand_clock.h"
#include "support/message_of.h"
#include "support/solver_fixture.h"
#include "worker/host_rows.h"
#include "worker/job.h"
#include "worker/worker.h"

namespace crema::test {

// Runs tasks one after the other in a thread of its own, as a host program answers its child.
class HostThread {
 public:
  ~HostThread() { finish(); }
  void add(std::function<void()> task) {
    const MutexLock lock(mutex_);
    tasks_.push_back(std::move(task));
    changed_.notify_one();
  }
  void finish() {  // after all tasks
    if (!thread_.joinable()) return;
    add(nullptr);
    thread_.join();
  }

 private:
  void work() {
    while (const auto task = next()) task();
  }
  std::function<void()> next() {
    MutexLock lock(mutex_);
    while (tasks_.empty()) changed_.wait(lock.standard());
    auto task = std::move(tasks_.front());
    tasks_.pop_front();
    return task;
  }

  Mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_ CREMA_GUARDED_BY(mutex_);
  std::thread thread_{[this] { work(); }};
};

struct RunOutcome {
  std::string error = "no error";  // of the coordinator
  std::vector<std::string> workers;
  std::vector<wire::Event> events, done;  // events of the coordinator; of the workers
};

class WorkerRuns : public SolverFixture {
 protected:
  static constexpr int kRanks = 4;

  // protobuf makes the default texts of messages at their first use. Debian's library is not instrumented, so
  // ThreadSanitizer does not see that this is safe: they are made here, by a run of one worker.
  void SetUp() override {
    SolverFixture::SetUp();
    static const RunOutcome first = run(job(1));
    endsWell(first);
  }

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
  // A worker's host, in a thread of its own: gets an empty event at the start, then each that the worker emits.
  using Host = std::function<void(const wire::Event&, worker::HostRows&)>;
  static RunOutcome run(const wire::Job& job, const std::string& modelHome = "", const Change& change = nullptr,
                        train::Request request = train::Request::kNone, const Host& host = nullptr) {
    wire::Job home = job;
    if (!modelHome.empty()) home.set_model_home(modelHome);
    RunOutcome outcome;
    outcome.workers.resize(static_cast<size_t>(job.workers()));
    std::atomic<int> joined{0};
    auto coordinator = std::make_unique<cluster::Coordinator>(worker::coordinatorOf(job), worker::workOf(home),
                                                              [&](const wire::Event& e) {
                                                                outcome.events.push_back(e);
                                                                joined += e.has_joined();
                                                              });
    const std::string address = coordinator->address();
    Mutex mutex;
    std::vector<std::thread> threads;
    for (int w = 0; w < job.workers(); ++w)
      threads.emplace_back([&, w, mine = job]() mutable {
        EXPECT_TRUE(soon([&] { return joined >= w; })) << "one that fails early would keep out the next";
        mine.set_worker(w), mine.set_coordinator(address);
        if (change) change(mine);
        const auto done = [&](const wire::Event& e) {
          const MutexLock lock(mutex);
          outcome.done.push_back(e);
        };
        outcome.workers[static_cast<size_t>(w)] =
            runOne(mine, host, w == job.workers() - 1 ? request : train::Request::kNone, done);
      });
    outcome.error = messageOf([&] { coordinator->run(nullptr); });
    coordinator.reset();  // as its process ends
    for (auto& t : threads) t.join();
    return outcome;
  }
  // Returns the error that this worker ends with.
  static std::string runOne(const wire::Job& job, const Host& host, train::Request request,
                            const std::function<void(const wire::Event&)>& done) {
    Interrupt interrupt;
    std::unique_ptr<worker::HostRows> rows;
    HostThread answers;
    const auto emit = [&](const wire::Event& e) {
      if (host) answers.add([&, e] { answer(host, e, *rows, interrupt); });
      if (e.has_done()) done(e);
    };
    rows = std::make_unique<worker::HostRows>(job, false, emit, &interrupt);
    if (host) emit(wire::Event());
    const std::string error = messageOf([&] {
      worker::runWorker(job, *rows, {emit, [&] { return request; }}, interrupt);
    });
    answers.finish();
    return error;
  }
  // The job with its training records as rows of the host: all for each worker, or the blocks of its ranks.
  wire::Job ofRows(wire::Job job, bool sharded) const {
    caffe::SolverParameter solver;
    EXPECT_TRUE(solver.ParseFromString(job.solver()));
    auto* layer = solver.mutable_net_param()->mutable_layer(0);
    layer->set_type("MemoryData"), layer->clear_data_param();
    auto* memory = layer->mutable_memory_data_param();
    memory->set_batch_size(5), memory->set_channels(1), memory->set_height(8), memory->set_width(8);
    job.set_solver(solver.SerializeAsString());
    auto* feed = job.mutable_train_rows();
    feed->set_records(200), feed->set_sharded(sharded), feed->set_batch(5), feed->set_description("DataFrame rows");
    job.set_work_folder(folder_.path());
    return job;
  }
  // Sends the rows [first, first + count) as one batch: label and image.
  static void sendRows(worker::HostRows& rows, const std::vector<caffe::Datum>& all, int64_t first, int64_t count) {
    wire::Input in;
    auto* batch = in.mutable_rows()->mutable_batch();
    batch->set_first(first), batch->set_rows(static_cast<int>(count));
    auto *id = batch->add_column(), *label = batch->add_column(), *image = batch->add_column();
    id->set_width(1), label->set_width(4), image->set_width(16 + 64);
    for (int64_t i = first; i < first + count; ++i) {
      const caffe::Datum& d = all[static_cast<size_t>(i)];
      const auto number = static_cast<float>(d.label());
      const int32_t head[] = {d.channels(), d.height(), d.width(), 0};
      id->mutable_values()->append("i");
      label->mutable_values()->append(reinterpret_cast<const char*>(&number), sizeof number);
      image->mutable_values()->append(reinterpret_cast<const char*>(head), sizeof head).append(d.data());
    }
    rows.accept(in);
  }
  std::string model() const { return readFile(folder_.file("model")); }
  // What is wrong ends the worker, as host/job_io.cc has it.
  static void answer(const Host& host, const wire::Event& event, worker::HostRows& rows, Interrupt& interrupt) {
    try {
      host(event, rows);
    } catch (const Error& e) {
      interrupt.raise(e);
      rows.fail(e);
    }
  }
  static void endsWell(const RunOutcome& o) {
    EXPECT_EQ(o.error, "no error");
    for (const auto& w : o.workers) EXPECT_EQ(w, "no error");
  }
};

}  // namespace crema::test
