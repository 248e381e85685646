#include "train/run.h"

#include <filesystem>
#include <utility>

#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "base/thread_pool.h"
#include "model/trained.h"
#include "solver/origin.h"

namespace crema::train {
namespace {

int recordsPerPass(const net::Net& net) {
  for (size_t i = 0; i < net.layers().size(); ++i)
    if (net.bottoms(static_cast<int>(i)).empty() && !net.tops(static_cast<int>(i)).empty()) {
      const Shape& s = net.tops(static_cast<int>(i))[0]->shape();
      if (s.axes()) return s[0];
    }
  return 0;
}

// One of another net, solver, seed or data that lies where this job's would gives a model of neither.
void checkOrigin(const RunOptions& o, const caffe::SolverState& state, const solver::Solver& solver) {
  const std::string& file = o.snapshotName.empty() ? o.snapshot : o.snapshotName;
  if (!state.has_origin()) {
    if (o.foundSnapshot && o.log)
      LOG_WARNING("{} does not say which job took it (Caffe or an earlier Crema did); it is taken as this job's", file);
    return;
  }
  const std::string differs = solver::difference(state.origin(), solver.origin());
  if (differs.empty()) return;
  if (o.foundSnapshot)
    invalid(
        "-resume auto: the newest snapshot {} is of another job, which differs in its {}. Give this job another place "
        "for its snapshots (snapshot_prefix; on Spark -model), move those away, or go on from it by naming it: "
        "-snapshot {} (on Spark also -weights, with the .caffemodel beside it)",
        file, differs, file);
  if (o.log)
    LOG_WARNING("{} is of another job, which differs in its {}; training goes on from it as told", file, differs);
}

// Whether it has the names that this run would give to its own: to write that again would put it at risk for nothing.
bool isOwn(const RunOptions& o, const solver::Solver& solver) {
  if (o.snapshotPrefix.empty()) return false;
  const auto folderAndName = [](const std::string& path) {
    const std::filesystem::path p(path);
    std::error_code none;
    return std::pair(std::filesystem::weakly_canonical(parentDirectory(path), none), p.filename());
  };
  const bool published = !o.publishedPrefix.empty();
  const auto own = folderAndName(solver.snapshotNames(published ? o.publishedPrefix : o.snapshotPrefix).state);
  const auto from = folderAndName(o.snapshotName.empty() ? o.snapshot : o.snapshotName);
  return own.second == from.second && (o.foundSnapshot || own.first == from.first);
}

void takeUp(const RunOptions& o, const std::optional<caffe::SolverState>& state, solver::Solver& solver) {
  // The solver's `weights`: together these files must give at least one layer its values.
  const std::string weights = joined(o.solver.weights(), ",");
  if (state) {
    if (o.log) LOG_INFO("Resuming from {}", o.snapshot);
    checkOrigin(o, *state, solver);
    solver.restore(*state, o.snapshot, o.weights, o.weightsName);
  } else if (!o.weights.empty()) {
    solver.copyTrainedFrom(o.weights);
  } else if (!weights.empty()) {
    solver.copyTrainedFrom(weights);
  }
}

// The snapshot's state, where there is one; a seed that was drawn gives way to its.
std::optional<caffe::SolverState> stateOf(RunOptions& o) {
  if (o.snapshot.empty()) return std::nullopt;
  caffe::SolverState state = model::readState(o.snapshot);
  if (o.drawnSeed && state.origin().has_random_seed()) {
    o.solver.set_random_seed(state.origin().random_seed());
    if (o.log)
      LOG_INFO("random_seed is not set: that of the snapshot is taken, {}, in place of a drawn one",
               o.solver.random_seed());
  }
  return state;
}

solver::SolverOptions solverOptions(const RunOptions& o, kernels::Context& kernels) {
  solver::SolverOptions s;
  s.kernels = &kernels;
  s.seed = static_cast<uint64_t>(o.solver.random_seed());
  s.folder = o.folder, s.origin = o.netOrigin, s.log = o.log;
  s.trainData.ranks = o.ranks;
  s.trainData.myRanks = collective::rankList(collective::ranksOfWorker(o.worker, o.workers, o.ranks));
  s.trainData.source = o.trainSource, s.testData.source = o.testSource;
  s.testData.testWorkers = o.workers;
  s.trainData.resize = s.testData.resize = o.resize;
  s.trainData.compareAll = s.testData.compareAll = o.compareAll;
  return s;
}

}  // namespace

void checkRun(int ranks, int workers, int worker, int threads) {
  constexpr int kMostRanks = 65536;
  if (ranks < 1 || ranks > kMostRanks) invalid("-ranks must be 1 to {}, not {}", kMostRanks, ranks);
  if (workers < 1 || workers > ranks)
    invalid(
        "-ranks {} -workers {}: there must be at least 1 worker and at most as many as ranks; "
        "name more ranks (they are part of the model) or fewer workers",
        ranks, workers);
  if (worker < 0 || worker >= workers) invalid("-worker {}: this run has workers 0 to {}", worker, workers - 1);
  checkThreads(threads, "-threads");
}

Run setUp(RunOptions o) {
  Run run;
  const auto calls = [&](const auto& body) {
    return named(o.snapshot, o.snapshotName, [&] { return named(o.weights, o.weightsName, body); });
  };
  run.kernels = std::make_unique<kernels::Context>(kernels::chooseIsa(o.isa), o.threads);
  run.train.ranks = o.ranks;
  run.train.myRanks = collective::ranksOfWorker(o.worker, o.workers, o.ranks);
  run.train.snapshotPrefix = o.snapshotPrefix, run.train.publishedPrefix = o.publishedPrefix;
  run.train.log = o.log;
  if (o.log) LOG_INFO("Use CPU.");
  if (o.log)
    LOG_INFO("Computing with {} on {} thread(s)", kernels::name(run.kernels->isa()), run.kernels->pool().size());
  if (o.worker == 0 && (o.solver.snapshot() > 0 || o.solver.snapshot_after_train()) && !o.snapshotPrefix.empty())
    checkWritable(o.snapshotPrefix), solver::clearSnapshotLeftovers(o.snapshotPrefix);
  const std::optional<caffe::SolverState> state = calls([&] { return stateOf(o); });
  run.solver = std::make_unique<solver::Solver>(o.solver, solverOptions(o, *run.kernels));
  run.train.recordsPerStep = static_cast<int64_t>(recordsPerPass(run.solver->net())) * o.solver.iter_size() * o.ranks;
  calls([&] { takeUp(o, state, *run.solver); });
  if (state && isOwn(o, *run.solver)) run.train.snapshotAt = run.solver->iteration();
  return run;
}

std::string saveFinalModel(const solver::Solver& solver, const std::string& path) {
  if (solver.iteration() >= solver.param().max_iter()) return solver.saveModel(path);
  LOG_WARNING(
      "the model {} is not written, as training was stopped at iteration {} of {}; -resume auto goes on from its "
      "snapshot",
      path, solver.iteration(), solver.param().max_iter());
  return "";
}

}  // namespace crema::train
