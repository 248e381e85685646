// crema train: Caffe's `caffe train`, and the same on several ranks and worker processes of this machine.
#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/temporary.h"
#include "base/text.h"
#include "cli/cluster_flags.h"
#include "cli/command.h"
#include "host/job_io.h"
#include "host/local_cluster.h"
#include "host/progress_line.h"
#include "host/signals.h"
#include "kernels/context.h"
#include "model/upgrade.h"
#include "solver/descriptions.h"
#include "train/run.h"

namespace crema::cli {
namespace {

struct TrainFlags {
  std::string solver, snapshot, weights, model, gpu, stage, sigint = "stop", sighup = "snapshot", sigterm, isa;
  std::string resume = "none";
  int ranks = 1, workers = 1, threads = 0, level = 0;
  worker::ClusterSettings cluster;
};

void trainHere(const train::RunOptions& options, const std::string& model) {
  train::Run run = train::setUp(options);
  train::TrainHooks hooks;
  hooks.request = host::polledRequest;
  hooks.progress = [](const train::Progress& p) { host::showProgress(p); };
  LOG_INFO("Starting Optimization");
  train::Trainer(*run.solver, nullptr, run.train, hooks).run();
  host::endProgress();
  if (!model.empty())
    if (const auto saved = train::saveFinalModel(*run.solver, model); !saved.empty())
      LOG_INFO("Final model: {}", saved);
  LOG_INFO("Optimization Done.");
}

// -resume auto: the newest whole snapshot with its model; -snapshot names a state.
solver::SnapshotFiles snapshotOf(const TrainFlags& flags, const std::string& prefix) {
  if (flags.resume != "auto" && flags.resume != "none") invalid("-resume must be auto or none, not '{}'", flags.resume);
  if (flags.resume == "none" || !flags.snapshot.empty()) return {"", flags.snapshot};
  if (prefix.empty()) invalid("-resume auto needs a snapshot_prefix in {}, to find snapshots", flags.solver);
  const auto newest = solver::newestSnapshot(prefix);
  if (!newest)
    LOG_INFO("-resume auto: there is no snapshot {}_iter_N.solverstate yet; training begins at iteration 0", prefix);
  return newest.value_or(solver::SnapshotFiles());
}

int train(const TrainFlags& flags) {
  host::catchSignals();
  refuseGpu(flags.gpu);
  if (!flags.snapshot.empty() && !flags.weights.empty())
    invalid("Give a snapshot to resume training or weights to finetune but not both.");
  const host::SignalEffects effects{host::parseEffect("sigint_effect", flags.sigint),
                                    host::parseEffect("sighup_effect", flags.sighup)};
  host::parseTermEffect("sigterm_effect", flags.sigterm, true);
  if (!flags.model.empty()) {
    refuseFolder(flags.model), checkWritable(flags.model), clearLeftovers(flags.model);
  }
  const caffe::SolverParameter written = model::readSolver(flags.solver);
  host::setEffects({effects.interrupt, effects.hangup,
                    host::parseTermEffect("sigterm_effect", flags.sigterm, !written.snapshot_prefix().empty())});
  caffe::SolverParameter solver = solver::prepareSolver(written, flags.solver);
  if (flags.level != 0) solver.mutable_train_state()->set_level(flags.level);
  for (const std::string& stage : splitList(flags.stage)) solver.mutable_train_state()->add_stage(stage);
  train::RunOptions o;
  o.snapshotPrefix = solver.snapshot_prefix();
  o.solver = std::move(solver);
  o.netOrigin = solver::netOrigin(written), o.folder = parentDirectory(flags.solver);
  o.ranks = flags.ranks, o.workers = flags.workers;
  o.threads = flags.threads, o.isa = flags.isa;
  const solver::SnapshotFiles from = snapshotOf(flags, o.snapshotPrefix);
  o.snapshot = from.state, o.foundSnapshot = flags.snapshot.empty();
  o.drawnSeed = written.random_seed() < 0;
  o.weights = o.snapshot.empty() ? flags.weights : from.model;
  wire::Job job = worker::jobOf(o);
  worker::set(flags.cluster, &job);
  host::checkJob(job);
  try {
    if (o.workers == 1)
      trainHere(o, flags.model);
    else
      host::runLocalCluster(o, flags.model, flags.cluster);
  } catch (const Error& e) {
    if (!host::endedByTerm()) throw;
    LOG_ERROR("{}", e.what());
  }
  return host::endedByTerm() ? host::kEndedByTerm : 0;
}

}  // namespace

void addTrain(CLI::App& program, Run& chosen) {
  addCommand(
      program, "train", "train or finetune a model",
      [](CLI::App& app) -> Run {
        auto f = std::make_shared<TrainFlags>();
        app.add_option("--solver", f->solver, "the solver prototxt")->required();
        app.add_option("--snapshot", f->snapshot, "resume from this .solverstate[.h5]");
        app.add_option("--resume", f->resume,
                       "auto: resume from the newest snapshot of the solver's snapshot_prefix, if there is one; one of "
                       "another net, solver, seed or data is refused")
            ->capture_default_str();
        app.add_option("--weights", f->weights, "finetune from these .caffemodel[.h5] files, separated by commas");
        app.add_option("--model", f->model, "write the final model here; .h5 is added or removed by snapshot_format");
        app.add_option("--sigint_effect", f->sigint, "what SIGINT does: stop, snapshot or none")->capture_default_str();
        app.add_option("--sighup_effect", f->sighup, "what SIGHUP does: stop, snapshot or none")->capture_default_str();
        app.add_option("--sigterm_effect", f->sigterm,
                       "what SIGTERM does: stop, snapshot (and then stop) or none; as it is, snapshot where the solver "
                       "has a snapshot_prefix, else stop. Then the exit code is 143");
        app.add_option("--ranks", f->ranks, "logical ranks: each computes its own batches, the gradients are averaged")
            ->capture_default_str();
        app.add_option("--workers", f->workers, "worker processes on this machine; the model does not depend on it")
            ->capture_default_str();
        app.add_option("--threads", f->threads, "threads per worker; 0: all cores; the model does not depend on it")
            ->capture_default_str();
        app.add_option("--isa", f->isa, kernels::isaNames() + "; the model does not depend on it");
        app.add_option("--level", f->level, "level of the train state");
        app.add_option("--stage", f->stage, "stages of the train state, separated by commas");
        app.add_option("--gpu", f->gpu, "refused: this executable computes on the CPU");
        addClusterFlags(app, f->cluster);
        return [f] { return train(*f); };
      },
      chosen);
}

}  // namespace crema::cli
