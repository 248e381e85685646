// crema worker, crema node and crema coordinator: the processes of a cluster. A host program sends the Job on stdin; people can
// give flags.
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "cli/cluster_flags.h"
#include "cli/command.h"
#include "host/job_io.h"
#include "host/processes.h"
#include "host/relay.h"
#include "kernels/context.h"
#include "model/upgrade.h"
#include "solver/descriptions.h"
#include "worker/job.h"

namespace crema::cli {
namespace {

struct WorkerFlags {
  std::string job, solver, coordinator, tokenFile, host = "127.0.0.1", model, snapshot, weights, isa;
  int worker = 0, workers = 1, ranks = 1, threads = 0, port = 0;
  worker::ClusterSettings cluster;
};

void declare(CLI::App& app, WorkerFlags& f) {
  app.add_option("--job", f.job,
                 "- : read one delimited Job (proto/wire.proto) from stdin; the end of stdin ends the process");
  app.add_option("--solver", f.solver, "the solver prototxt");
  app.add_option("--token_file", f.tokenFile,
                 "a file with the cluster's secret, 16 bytes or more, the same everywhere");
  app.add_option("--host", f.host, "numeric address to listen on")->capture_default_str();
  app.add_option("--ranks", f.ranks, "logical ranks")->capture_default_str();
  app.add_option("--workers", f.workers, "worker processes")->capture_default_str();
  addClusterFlags(app, f.cluster);
}

wire::Job jobOf(const WorkerFlags& f) {
  if (f.job == "-") return host::readJob(STDIN_FILENO);
  if (!f.job.empty()) invalid("-job must be - (stdin), not '{}'", f.job);
  if (f.solver.empty() || f.tokenFile.empty()) invalid("give -solver and -token_file, or -job - with a Job on stdin");
  const caffe::SolverParameter written = model::readSolver(f.solver);
  train::RunOptions o;
  o.solver = solver::prepareSolver(written, f.solver);
  if (written.random_seed() < 0) invalid("random_seed must be set in {}: every process reads its own copy", f.solver);
  o.netOrigin = solver::netOrigin(written), o.folder = parentDirectory(f.solver);
  o.ranks = f.ranks, o.workers = f.workers, o.worker = f.worker;
  o.threads = f.threads, o.isa = f.isa;
  o.snapshot = f.snapshot, o.weights = f.weights, o.snapshotPrefix = o.solver.snapshot_prefix();
  wire::Job job = worker::jobOf(o);
  job.set_token(readFile(f.tokenFile));
  job.set_host(f.host), job.set_coordinator(f.coordinator), job.set_model(f.model);
  worker::set(f.cluster, &job);
  return job;
}

}  // namespace

void addWorker(CLI::App& program, Run& chosen) {
  addCommand(
      program, "worker", "one worker process of a cluster",
      [](CLI::App& app) -> Run {
        auto f = std::make_shared<WorkerFlags>();
        declare(app, *f);
        app.add_option("--coordinator", f->coordinator, "numeric host:port of the coordinator");
        app.add_option("--worker", f->worker, "which worker this is, from 0");
        app.add_option("--model", f->model, "where worker 0 writes the final model");
        app.add_option("--snapshot", f->snapshot, "resume from this .solverstate[.h5]");
        app.add_option("--weights", f->weights, "finetune from these .caffemodel[.h5] files, separated by commas");
        app.add_option("--threads", f->threads, "threads; 0: all cores");
        app.add_option("--isa", f->isa, kernels::isaNames());
        return [f] {
          if (f->job.empty() && f->coordinator.empty())
            invalid("give -coordinator, the host:port that `crema coordinator` printed");
          return host::serveWorker([f] { return jobOf(*f); }, f->job == "-");
        };
      },
      chosen);
}

void addCoordinator(CLI::App& program, Run& chosen) {
  addCommand(
      program, "coordinator", "gathers the workers of a cluster and watches over them",
      [](CLI::App& app) -> Run {
        auto f = std::make_shared<WorkerFlags>();
        declare(app, *f);
        app.add_option("--port", f->port, "port to listen on; 0: any")->capture_default_str();
        return [f] { return host::serveCoordinator([f] { return jobOf(*f); }, f->job == "-", f->port); };
      },
      chosen);
}

void addNode(CLI::App& program, Run& chosen) {
  addJobCommand(program, chosen, "node", "one node of a TensorFlow program: its queues, its port, its process",
                [] { return host::serveNode([] { return host::readJob(STDIN_FILENO); }); });
}

void addRelay(CLI::App& program, Run& chosen) {
  struct Flags {
    std::string to, purpose;
    double timeout = 60;
  };
  addCommand(
      program, "relay", "carries the bytes of the process that started it to a port of a run",
      [](CLI::App& app) -> Run {
        auto f = std::make_shared<Flags>();
        app.add_option("--to", f->to, "numeric host:port")->required();
        app.add_option("--purpose", f->purpose, "node or control: what the port is for")->required();
        app.add_option("--timeout", f->timeout, "seconds until the port must have answered")->capture_default_str();
        return [f] {
          host::relay(f->to, f->purpose, f->timeout);
          return 0;
        };
      },
      chosen);
}

}  // namespace crema::cli
