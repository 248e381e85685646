#include "base/file.h"
#include "base/log.h"
#include "cluster/worker.h"
#include "solver/descriptions.h"

namespace crema::cluster {
namespace {

int recordsPerPass(const net::Net& net) {
  for (size_t i = 0; i < net.layers().size(); ++i)
    if (net.bottoms(static_cast<int>(i)).empty() && !net.tops(static_cast<int>(i)).empty()) {
      const Shape& s = net.tops(static_cast<int>(i))[0]->shape();
      if (s.axes()) return s[0];
    }
  return 0;
}

std::string snapshotPrefix(const wire::Job& job, const caffe::SolverParameter& solver) {
  return job.has_snapshot_prefix() ? job.snapshot_prefix() : solver.snapshot_prefix();
}

void start(const wire::Job& job, const caffe::SolverParameter& param, solver::Solver& solver, bool log) {
  std::string weights;  // of the solver: all together must give at least one layer its values
  for (const auto& w : param.weights()) weights += (weights.empty() ? "" : ",") + w;
  if (!job.snapshot().empty() && log) LOG_INFO("Resuming from {}", job.snapshot());
  if (!job.snapshot().empty())
    solver.restore(job.snapshot(), job.weights());
  else if (!job.weights().empty())
    solver.copyTrainedFrom(job.weights());
  else if (param.weights_size() > 0)
    solver.copyTrainedFrom(weights);
}

}  // namespace

JobSetup setUp(const wire::Job& job, const std::string& folder, bool log, const HostRows* rows) {
  caffe::SolverParameter param;
  if (!param.ParseFromString(job.solver()))
    badData("the job's solver cannot be read; host and executable are of different versions");
  JobSetup s;
  s.kernels = std::make_unique<kernels::Context>(kernels::chooseIsa(job.isa()),
                                                 job.threads() > 0 ? job.threads() : availableCores());
  s.train.ranks = job.ranks();
  s.train.myRanks = collective::ranksOfWorker(job.worker(), job.workers(), job.ranks());
  s.train.snapshotPrefix = snapshotPrefix(job, param);
  s.train.publishedPrefix = job.published_prefix();
  s.train.log = job.log();
  solver::SolverOptions o;
  o.kernels = s.kernels.get();
  o.seed = static_cast<uint64_t>(param.random_seed());
  o.folder = folder;
  o.origin = job.net_origin();
  o.log = log;
  o.trainData.ranks = job.ranks();
  o.trainData.myRanks = collective::rankList(s.train.myRanks);
  o.trainData.source = sourceOf(rows ? rows->train : nullptr, rows ? rows->trainRecords : nullptr, job.train_source());
  o.testData.source = sourceOf(rows ? rows->test : nullptr, rows ? rows->testRecords : nullptr, job.test_source());
  o.testData.testWorkers = job.workers();
  o.trainData.resize = o.testData.resize = job.resize();
  if (log) LOG_INFO("Use CPU.");
  if (log) LOG_INFO("Computing with {} on {} thread(s)", kernels::name(s.kernels->isa()), s.kernels->pool().size());
  if (s.train.myRanks.lo == 0 && (param.snapshot() > 0 || param.snapshot_after_train()) &&
      !s.train.snapshotPrefix.empty())
    checkWritable(s.train.snapshotPrefix), solver::clearSnapshotLeftovers(s.train.snapshotPrefix);
  s.solver = std::make_unique<solver::Solver>(param, o);
  s.train.recordsPerStep = static_cast<int64_t>(recordsPerPass(s.solver->net())) * param.iter_size() * job.ranks();
  named(job.snapshot(), job.snapshot_name(),
        [&] { named(job.weights(), job.weights_name(), [&] { start(job, param, *s.solver, log); }); });
  return s;
}

wire::Event toEvent(const train::Progress& p) {
  wire::Event event;
  auto* out = event.mutable_progress();
  out->set_iteration(p.iteration), out->set_max_iter(p.maxIter);
  out->set_loss(p.loss), out->set_lr(p.rate);
  out->set_records_per_second(p.recordsPerSecond), out->set_seconds_left(p.secondsLeft);
  return event;
}

wire::Event toEvent(int64_t iteration, int net, const std::vector<train::TestOutput>& outputs) {
  wire::Event event;
  event.mutable_test()->set_iteration(iteration);
  event.mutable_test()->set_net(net);
  for (const auto& o : outputs) {
    auto* out = event.mutable_test()->add_output();
    out->set_name(o.name);
    out->set_loss_weight(static_cast<float>(o.lossWeight));
    for (float v : o.values) out->add_value(v);
  }
  return event;
}

wire::Event toEvent(int64_t iteration, const solver::SnapshotFiles& files) {
  wire::Event event;
  auto* out = event.mutable_snapshot();
  out->set_iteration(iteration), out->set_model(files.model), out->set_state(files.state);
  return event;
}

}  // namespace crema::cluster
