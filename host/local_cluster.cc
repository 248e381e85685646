#include "host/local_cluster.h"

#include <unistd.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "base/log_files.h"
#include "base/random_bytes.h"
#include "base/thread_pool.h"
#include "cluster/coordinator.h"
#include "host/child_process.h"
#include "host/job_io.h"
#include "host/progress_line.h"
#include "host/signals.h"
#include "worker/job.h"

namespace crema::host {
namespace {

std::unique_ptr<ChildProcess> startWorker(const wire::Job& job) {
  // Their log lines are relayed by this process, to its log files too.
  auto child = std::make_unique<ChildProcess>(
      ownExecutable(), std::vector<std::string>{"crema", "worker", "-job", "-", "-logtostderr",
                                                logging().prefix ? "-log_prefix" : "-nolog_prefix", "-minloglevel",
                                                std::to_string(logging().lowest)});
  child->send(job);
  return child;
}

// A message and not a signal, as a child that has just started does not handle signals yet.
wire::Input wishOf(train::Request request) {
  wire::Input input;
  input.mutable_wish()->set_snapshot(train::wantsSnapshot(request));
  input.mutable_wish()->set_stop(train::wantsStop(request));
  return input;
}

void show(const wire::Event& event) {
  if (event.has_progress()) {
    const auto& p = event.progress();
    showProgress({p.iteration(),
                  p.max_iter(),
                  p.loss(),
                  p.lr(),
                  p.records_per_second(),
                  p.has_seconds_left() ? p.seconds_left() : -1,
                  {p.feed_share(), p.exchange_share()}},
                 p.slowest_worker());
  }
  if (event.has_joined())
    LOG_INFO("worker {} has joined ({} of {})", event.joined().worker(), event.joined().have(), event.joined().want());
}

// A signal to this process becomes a message to worker 0, whose spare floats carry it to all; a stop is sent to all
// workers, so that each ends its share of a long test. A child that ends before it has joined ends the run, after three
// seconds for a better error message.
void watch(const std::vector<std::unique_ptr<ChildProcess>>& children, const std::atomic<bool>& over, Interrupt& lost) {
  std::string cause;
  Deadline moment = Deadline::after(0);
  while (!over) {
    const train::Request r = polledRequest();
    if (r != train::Request::kNone)
      for (size_t w = 0; w < (train::wantsStop(r) ? children.size() : 1); ++w) children[w]->send(wishOf(r));
    for (size_t w = 0; w < children.size() && cause.empty(); ++w)
      if (const std::string how = children[w]->ended(); !how.empty())
        cause = fmt::format("worker {} is gone: {}; its last lines are above", w, how), moment = Deadline::after(3);
    if (!cause.empty() && moment.passed()) lost.raise(Error(ErrorKind::kPeer, cause));
    ::usleep(20000);
  }
}

}  // namespace

void runLocalCluster(const train::RunOptions& options, const std::string& model, double joinTimeout,
                     double stepTimeout) {
  wire::Job job = worker::jobOf(options);
  job.set_model(model);
  job.set_join_timeout(joinTimeout), job.set_step_timeout(stepTimeout);
  job.set_host(localHost()), job.set_token(randomBytes(32));
  cluster::Coordinator coordinator(worker::coordinatorOf(job), worker::workOf(job), show);
  std::vector<std::unique_ptr<ChildProcess>> children;
  for (int w = 0; w < job.workers(); ++w) {
    wire::Job mine = job;
    mine.set_worker(w);
    mine.set_coordinator(coordinator.address());
    mine.set_coordinator_listens(true);
    if (mine.threads() <= 0) mine.set_threads(std::max(1, availableCores() / job.workers()));
    children.push_back(startWorker(mine));
  }
  std::atomic<bool> over{false};
  Interrupt lost;
  std::thread watcher([&] { watch(children, over, lost); });
  const auto join = [&] {
    over = true, watcher.join();
    endProgress();
  };
  try {
    coordinator.run(&lost);
  } catch (...) {
    join();
    for (auto& c : children) c->end(2);
    throw;
  }
  join();
  for (auto& c : children) c->end(5);
}

}  // namespace crema::host
