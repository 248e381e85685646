// crema worker and crema coordinator: the processes of a cluster. A host program sends the Job on stdin; people can
// give flags.
#include "cluster/worker.h"

#include <unistd.h>

#include <cstdio>

#include "base/file.h"
#include "base/log.h"
#include "cli/command.h"
#include "cli/job_io.h"
#include "cli/signals.h"
#include "cluster/coordinator.h"
#include "kernels/context.h"
#include "model/upgrade.h"

namespace crema::cli {
namespace {

struct Flags {
  std::string job, solver, coordinator, tokenFile, host = "127.0.0.1", model, snapshot, weights, isa;
  int worker = 0, workers = 1, ranks = 1, threads = 0, port = 0;
  double joinTimeout = 60, stepTimeout = 60;
};

void declare(CLI::App& app, Flags& f) {
  app.add_option("--job", f.job,
                 "- : read one delimited Job (proto/wire.proto) from stdin; the end of stdin ends the process");
  app.add_option("--solver", f.solver, "the solver prototxt");
  app.add_option("--token_file", f.tokenFile,
                 "a file with the cluster's secret, 16 bytes or more, the same everywhere");
  app.add_option("--host", f.host, "numeric address to listen on")->capture_default_str();
  app.add_option("--ranks", f.ranks, "logical ranks")->capture_default_str();
  app.add_option("--workers", f.workers, "worker processes")->capture_default_str();
  app.add_option("--join_timeout", f.joinTimeout, "seconds to wait for all workers")->capture_default_str();
  app.add_option("--step_timeout", f.stepTimeout, "seconds without a sign of life before a worker is given up")
      ->capture_default_str();
}

wire::Job jobOf(const Flags& f) {
  if (f.job == "-") return readJob(STDIN_FILENO);
  if (!f.job.empty()) invalid("-job must be - (stdin), not '{}'", f.job);
  if (f.solver.empty() || f.tokenFile.empty()) invalid("give -solver and -token_file, or -job - with a Job on stdin");
  wire::Job job;
  const caffe::SolverParameter solver = loadSolver(f.solver);
  if (readSolver(f.solver).random_seed() < 0)
    invalid("random_seed must be set in {}: every process reads its own copy", f.solver);
  job.set_solver(solver.SerializeAsString());
  job.set_net_origin(netOrigin(f.solver));
  job.set_token(readFile(f.tokenFile));
  job.set_host(f.host), job.set_ranks(f.ranks), job.set_workers(f.workers), job.set_worker(f.worker);
  job.set_join_timeout(f.joinTimeout), job.set_step_timeout(f.stepTimeout);
  job.set_threads(f.threads), job.set_isa(f.isa);
  job.set_coordinator(f.coordinator), job.set_model(f.model), job.set_snapshot(f.snapshot), job.set_weights(f.weights);
  job.set_snapshot_prefix(solver.snapshot_prefix());
  return job;
}

void checkToken(const wire::Job& job) {
  checkJob(job);
  if (job.token().size() < 16) invalid("the cluster's token has {} bytes; at least 16 are needed", job.token().size());
}

// Runs body; on an error the host hears Failed before the error goes on to stderr and the exit code.
int withEvents(bool wire, const std::function<void(const std::function<void(const wire::Event&)>&)>& body,
               const std::function<void(const wire::Event&)>& text) {
  const auto emit = [&](const wire::Event& e) { wire ? toHost(e) : text(e); };
  try {
    body(emit);
  } catch (const Error& e) {
    wire::Event failed;
    failed.mutable_failed()->set_story(e.what());
    failed.mutable_failed()->set_kind(name(e.kind()));
    try {
      emit(failed);
    } catch (const Error&) {
      // the host is gone; stderr has the story
    }
    throw;
  }
  return 0;
}

// For people: the address, which a script needs, on stdout; the rest as log lines.
void showEvent(const wire::Event& e) {
  if (e.has_listening()) {
    std::printf("Listening on %s\n", e.listening().address().c_str());
    std::fflush(stdout);
  }
  if (e.has_joined())
    LOG_INFO("worker {} ({}) has joined ({} of {})", e.joined().worker(), e.joined().host(), e.joined().have(),
             e.joined().want());
  if (e.has_progress())
    LOG_INFO("Iteration {} of {}, loss = {:.6g}, {:.0f} records/s", e.progress().iteration(), e.progress().max_iter(),
             e.progress().loss(), e.progress().records_per_second());
  if (e.has_snapshot()) LOG_INFO("Snapshot {}", e.snapshot().state());
  if (e.has_done()) LOG_INFO("Optimization Done.");
}

int worker(const Flags& f) {
  catchSignals();
  setEffects({Request::kStop, Request::kSnapshot, Request::kEnd});
  const wire::Job job = jobOf(f);
  checkToken(job);
  if (job.worker() != 0 && !job.log())
    setLogLevel(LogLevel::kWarning);             // one process of a terminal writes Caffe's lines
  static Interrupt& interrupt = *new Interrupt;  // never freed: the stdin watcher may outlive this call
  static HostRows& rows = *new HostRows(job, false, toHost, &interrupt);  // nor this
  if (f.job == "-") exitWhenStdinEnds(interrupt, &rows);
  const auto request = [] {
    const Request host = (rows.snapshotWished.exchange(false) ? Request::kSnapshot : Request::kNone) |
                         (rows.stopWished.exchange(false) ? Request::kStop : Request::kNone);
    return host | polledRequest();
  };
  const int code = withEvents(
      f.job == "-", [&](const auto& emit) { runWorker(job, rows, emit, request, interrupt); },
      [](const wire::Event&) {});
  std::fflush(stdout);
  ::_exit(code);  // the stdin watcher may still hold a read; everything is written
}

int coordinator(const Flags& f) {
  const wire::Job job = jobOf(f);
  checkToken(job);
  static Interrupt& interrupt = *new Interrupt;  // never freed: the stdin watcher may outlive this call
  if (f.job == "-") exitWhenStdinEnds(interrupt);
  CoordinatorOptions o;
  o.host = job.host().empty() ? localHost() : job.host();
  o.port = f.port;
  o.token = job.token();
  o.ranks = job.ranks(), o.workers = job.workers();
  o.joinTimeout = job.join_timeout(), o.stepTimeout = job.step_timeout();
  o.jobDigest = jobDigest(job);
  o.modelHome = job.model_home();
  const auto body = [&](const auto& emit) {
    Coordinator c(o, emit);
    c.run(&interrupt);
    wire::Event done;
    done.mutable_done();
    emit(done);
  };
  const int code = withEvents(f.job == "-", body, showEvent);
  std::fflush(stdout);
  ::_exit(code);
}

}  // namespace

void addWorker(CLI::App& program, Run& chosen) {
  addCommand(
      program, "worker", "one worker process of a cluster",
      [](CLI::App& app) -> Run {
        auto f = std::make_shared<Flags>();
        declare(app, *f);
        app.add_option("--coordinator", f->coordinator, "numeric host:port of the coordinator");
        app.add_option("--worker", f->worker, "which worker this is, from 0");
        app.add_option("--model", f->model, "where worker 0 writes the final model");
        app.add_option("--snapshot", f->snapshot, "resume from this .solverstate[.h5]");
        app.add_option("--weights", f->weights, "finetune from these .caffemodel[.h5] files, separated by commas");
        app.add_option("--threads", f->threads, "threads; 0: all cores");
        app.add_option("--isa", f->isa, kernels::isaNames());
        return [f] { return worker(*f); };
      },
      chosen);
}

void addCoordinator(CLI::App& program, Run& chosen) {
  addCommand(
      program, "coordinator", "gathers the workers of a cluster and watches over them",
      [](CLI::App& app) -> Run {
        auto f = std::make_shared<Flags>();
        declare(app, *f);
        app.add_option("--port", f->port, "port to listen on; 0: any")->capture_default_str();
        return [f] { return coordinator(*f); };
      },
      chosen);
}

}  // namespace crema::cli
