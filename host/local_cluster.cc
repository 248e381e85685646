#include "host/local_cluster.h"

#include <unistd.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "base/log_files.h"
#include "base/mutex.h"
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

// Seconds for the processes of workers behind the coordinator's end, by which all have closed their connections but those
// that are stopped or cut off, or have been writing a snapshot for longer than it waited (patience.h).
constexpr double kAfterError = 1, kAfterSuccess = 5;
// From when the first worker has ended alone, as the run was asked to stop and others did not come, until all must have.
// Its snapshot is whole.
constexpr double kAfterFirst = 2;

std::unique_ptr<ChildProcess> startWorker(const wire::Job& job) {
  // Their log lines are relayed by this process, to its log files too.
  auto child = std::make_unique<ChildProcess>(
      ownExecutable(), std::vector<std::string>{"crema", "worker", "-job", "-", "-logtostderr",
                                                logging().prefix ? "-log_prefix" : "-nolog_prefix", "-minloglevel",
                                                std::to_string(logging().lowest)});
  child->send(job);
  return child;
}

// The error with which a worker has ended, unless it is in what is said of it in any case, or around it.
void showError(ChildProcess& child, const std::string& said) {
  constexpr std::string_view kBegin = "crema: error: ";
  const std::string error = child.takeError();
  if (error.empty()) return;
  const std::string message = error.substr(kBegin.size(), error.size() - kBegin.size() - 1);
  if (said.find(message) == std::string::npos && (said.empty() || message.find(said) == std::string::npos))
    relayError(error);
}

// The processes of the workers. The coordinator's thread says who is lost; a thread of its own watches and replaces them,
// and passes on signals.
class Workers {
 public:
  explicit Workers(const wire::Job& job)
      : joined(static_cast<size_t>(job.workers())),
        job_(job),
        attempts_(joined.size()),
        ended_(joined.size()),
        moment_(joined.size(), Deadline::after(0)) {
    for (int w = 0; w < job_.workers(); ++w) children_.push_back(start(w));
    thread_ = std::thread([this] { watch(); });
  }
  // Ends them; those that have nothing left to do get `grace` seconds, together. error: what the run ends with.
  void end(double grace, const std::string& error = "") {
    grace_ = grace, over_ = true;
    thread_.join();
    for (auto& c : children_) showError(*c, error);
  }
  Interrupt& gone() { return gone_; }  // raised when a worker has ended before it could join
  std::atomic<bool> started{false};    // all have joined
  std::vector<std::atomic<bool>> joined;
  void replace(const wire::Event::Lost& lost) {
    const MutexLock lock(mutex_);
    lost_.push_back(lost);
  }

 private:
  std::unique_ptr<ChildProcess> start(int w) {
    wire::Job mine = job_;
    mine.set_worker(w), mine.set_attempt(attempts_[static_cast<size_t>(w)]);
    mine.set_coordinator_listens(true);
    if (mine.threads() <= 0) mine.set_threads(std::max(1, availableCores() / job_.workers()));
    return startWorker(mine);
  }

  // Children die with the thread that has started them, so this one ends last.
  void watch() {
    while (!over_) {
      if (const train::Request r = polledRequest(); r != train::Request::kNone) request(r);
      replaceLost();
      for (size_t w = 0; w < children_.size(); ++w) look(w);
      if (!alone_.empty() && othersEnd_.passed()) gone_.raise(Error(ErrorKind::kStopped, alone_));
      ::usleep(20000);
    }
    const Deadline deadline = Deadline::after(grace_);
    for (auto& c : children_) c->end(deadline.left());
  }

  // A signal to this process becomes a message to all workers, so that none takes it with it when it is lost, and each
  // ends its share of a long test. A message and not a signal, as a child that has just started does not handle signals
  // yet. Snapshots are counted, as workers hear of one in different steps.
  void request(train::Request r) {
    wire::Input input;
    if (train::wantsStop(r))
      stopping_ = true, input.mutable_wish()->set_stop(true),
      input.mutable_wish()->set_snapshot(train::wantsSnapshot(r));
    else
      input.mutable_wish()->set_snapshots(++snapshots_);
    for (auto& c : children_)
      if (c->there()) c->send(input);
  }

  // A child that ends before it has joined is replaced when it was killed; else it ends the run, after three seconds for a
  // better error message. What ends later is the coordinator's to notice.
  void look(size_t w) {
    if (const std::string how = children_[w]->ended(); !how.empty()) {
      ended_[w] = fmt::format("worker {} is gone: {}; its last lines are above", w, how);
      moment_[w] = Deadline::after(3);
      if (children_[w]->killed() && !joined[w] && job_.replacement() != "fail") {
        wire::Event::Lost lost;
        lost.set_worker(static_cast<int>(w)), lost.set_attempt(attempts_[w]);
        replace(lost);
      }
    }
    if (!ended_[w].empty() && moment_[w].passed() && (!started || job_.replacement() == "fail")) {
      showError(*children_[w], "");
      gone_.raise(Error(ErrorKind::kPeer, ended_[w]));
    }
  }

  // Not where the run was asked to stop: then others end, with or without them.
  void replaceLost() {
    std::vector<wire::Event::Lost> lost;
    {
      const MutexLock lock(mutex_);
      lost.swap(lost_);
    }
    for (const auto& l : lost) {
      const auto w = static_cast<size_t>(l.worker());
      // The loss of an earlier process, which another thread may have seen first: its successor must not end for it.
      if (l.attempt() < attempts_[w]) continue;
      children_[w]->end(0);
      showError(*children_[w], l.story());
      joined[w] = false;
      if (stopping_ && l.asked() && alone_.empty()) alone_ = l.story(), othersEnd_ = Deadline::after(kAfterFirst);
      if (stopping_ || ++attempts_[w] > kReplacements) continue;
      startAgain(l.worker());
    }
  }

  // The others go on without one that cannot be started; what the system refuses ends no run.
  void startAgain(int worker) {
    const auto w = static_cast<size_t>(worker);
    try {
      children_[w] = start(worker);
      ended_[w].clear();
    } catch (const std::exception&) {
      LOG_WARNING("worker {} is not started again: {}", worker, asError(std::current_exception()).what());
    }
  }

  static constexpr int kReplacements = 3;
  const wire::Job job_;
  std::vector<int> attempts_;
  std::vector<std::unique_ptr<ChildProcess>> children_;
  std::vector<std::string> ended_;  // how a child has ended that was not replaced; "": it has not
  std::vector<Deadline> moment_;    // until which a better message may come
  Interrupt gone_;
  std::atomic<bool> over_{false};
  std::atomic<double> grace_{0};
  Mutex mutex_;
  std::vector<wire::Event::Lost> lost_ CREMA_GUARDED_BY(mutex_);
  // Of the thread alone. alone_: how the first worker has ended since the run was asked to stop; "": none has.
  bool stopping_ = false;
  int64_t snapshots_ = 0;  // that the workers have been asked for
  std::string alone_;
  Deadline othersEnd_ = Deadline::after(0);
  std::thread thread_;
};

void show(const wire::Event& event) {
  if (event.has_progress()) {
    const auto& p = event.progress();
    showProgress({p.iteration(),
                  p.max_iter(),
                  p.loss(),
                  p.lr(),
                  p.records_per_second(),
                  p.has_seconds_left() ? p.seconds_left() : -1,
                  {p.feed_share(), p.compute_share(), p.exchange_share(), p.wait_share()}},
                 p.slowest_worker());
  }
  if (event.has_joined())
    LOG_INFO("worker {} has joined ({} of {})", event.joined().worker(), event.joined().have(), event.joined().want());
  if (event.has_regrouped()) LOG_INFO("{}", worker::changeOf(event));
}

}  // namespace

void runLocalCluster(const train::RunOptions& options, const std::string& model,
                     const worker::ClusterSettings& settings) {
  wire::Job job = worker::jobOf(options);
  job.set_model(model);
  worker::set(settings, &job);
  job.set_host(localHost()), job.set_token(randomBytes(32));
  std::unique_ptr<Workers> workers;
  const auto heard = [&](const wire::Event& event) {
    show(event);
    if (event.has_started()) workers->started = true;
    if (event.has_joined()) workers->joined[static_cast<size_t>(event.joined().worker())] = true;
    if (event.has_lost() && !event.lost().replaced()) workers->replace(event.lost());
  };
  cluster::Coordinator coordinator(worker::coordinatorOf(job), worker::workOf(job), heard);
  job.set_coordinator(coordinator.address());
  workers = std::make_unique<Workers>(job);
  try {
    coordinator.run(&workers->gone());
  } catch (const std::exception& e) {
    workers->end(kAfterError, e.what());
    endProgress();
    throw;
  }
  workers->end(kAfterSuccess);
  endProgress();
}

}  // namespace crema::host
