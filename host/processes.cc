#include "host/processes.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>

#include "base/file.h"
#include "base/log_files.h"
#include "cluster/coordinator.h"
#include "host/job_io.h"
#include "host/nodes.h"
#include "host/outbox.h"
#include "host/signals.h"
#include "host/stdin_reader.h"
#include "worker/job.h"
#include "worker/worker.h"

namespace crema::host {
namespace {

void checkToken(const wire::Job& job) {
  if (job.has_node())
    checkTimeouts(job.join_timeout(), job.step_timeout());
  else
    checkJob(job);
  if (job.token().size() < 16) invalid("the cluster's token has {} bytes; at least 16 are needed", job.token().size());
}

// Without a host program: the address goes to stdout, for scripts, everything else to the log.
void showEvent(const wire::Event& e) {
  if (e.has_listening()) {
    std::printf("Listening on %s\n", e.listening().address().c_str());
    std::fflush(stdout);
  }
  if (e.has_joined())
    LOG_INFO("worker {} ({}) has joined ({} of {})", e.joined().worker(), e.joined().host(), e.joined().have(),
             e.joined().want());
  if (e.has_progress()) {
    const auto& p = e.progress();
    LOG_INFO(
        "Iteration {} of {}, loss = {:.6g}, {:.0f} records/s, feed {:.0f} %, compute {:.0f} %, exchange {:.0f} %, "
        "wait {:.0f} %",
        p.iteration(), p.max_iter(), p.loss(), p.records_per_second(), 100 * p.feed_share(), 100 * p.compute_share(),
        100 * p.exchange_share(), 100 * p.wait_share());
  }
  if (const std::string line = worker::changeOf(e); !line.empty()) LOG_INFO("{}", line);
  if (e.has_snapshot()) LOG_INFO("Snapshot {}", e.snapshot().state());
  if (e.has_done()) LOG_INFO("Optimization Done.");
}

// The host has heard all, and takes the end of stdout for the end of the run.
void closeStdout() {
  std::fflush(stdout);
  const int nothing = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
  if (nothing < 0) return static_cast<void>(::close(STDOUT_FILENO));  // too many are open: the end counts for more
  ::dup2(nothing, STDOUT_FILENO);
  ::close(nothing);
}

}  // namespace

int serveWorker(const std::function<wire::Job()>& readJob, bool byHost) {
  catchSignals();
  if (byHost) leaveInterruptsToHost();
  setEffects({train::Request::kStop, train::Request::kSnapshot, train::Request::kEnd});
  const wire::Job job = readJob();
  checkToken(job);
  const LogLevel level = static_cast<LogLevel>(logging().lowest);
  if (job.worker() != 0 && !job.log())
    setLogLevel(std::max(level, LogLevel::kWarning));  // on a terminal only who leads writes Caffe's lines
  static Interrupt& interrupt = *new Interrupt;        // never freed: the stdin watcher may outlive this call
  static worker::HostRows& rows = *new worker::HostRows(job, false, toHost, &interrupt);  // nor this
  if (byHost) exitWhenStdinEnds(interrupt, &rows);
  const auto request = [] {
    const train::Request requested =
        (rows.snapshotRequested.exchange(false) ? train::Request::kSnapshot : train::Request::kNone) |
        (rows.stopRequested.exchange(false) ? train::Request::kStop : train::Request::kNone);
    return requested | polledRequest();
  };
  const auto emit = [&](const wire::Event& event) {
    if (byHost) toHost(event);
  };
  const worker::Callbacks callbacks{emit, request, [level] { setLogLevel(level); }};
  reportingFailure(emit, [&] { worker::runWorker(job, rows, callbacks, interrupt); });
  exitBesideStdin();
}

int serveNode(const std::function<wire::Job()>& readJob) {
  const wire::Job job = readJob();
  checkToken(job);
  runNode(job);
}

int serveCoordinator(const std::function<wire::Job()>& readJob, bool byHost, int port) {
  if (byHost) leaveInterruptsToHost();
  const wire::Job job = readJob();
  checkToken(job);
  static Interrupt& interrupt = *new Interrupt;  // never freed: the stdin watcher may outlive this call
  if (job.has_node()) coordinateNodes(job, interrupt);
  if (byHost) exitWhenStdinEnds(interrupt);
  cluster::CoordinatorOptions o = worker::coordinatorOf(job);
  o.port = port;
  static Outbox& outbox = *new Outbox([byHost](const wire::Event& event) {  // never freed, as the interrupt
    byHost ? toHost(event) : showEvent(event);
  });
  std::unique_ptr<cluster::Coordinator> coordinator;
  const auto answerLate = [&] {
    if (byHost && job.coordinator_listens() && coordinator) closeStdout(), coordinator->answerLate(interrupt);
    coordinator.reset();
  };
  try {
    reportingThrough(outbox, hostPatience(job), [&] {
      const auto emit = [](const wire::Event& event) { outbox.put(event); };
      coordinator = std::make_unique<cluster::Coordinator>(o, worker::workOf(job), emit);
      coordinator->run(&interrupt);
      wire::Event done;
      done.mutable_done();
      emit(done);
    });
  } catch (...) {
    answerLate();
    throw;
  }
  answerLate();
  exitBesideStdin();
}

}  // namespace crema::host
