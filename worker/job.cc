#include "worker/job.h"

#include "base/sha256.h"
#include "cluster/secret.h"
#include "worker/training.h"

namespace crema::worker {

wire::Job jobOf(const train::RunOptions& o) {
  wire::Job job;
  job.set_solver(o.solver.SerializeAsString());
  job.set_net_origin(o.netOrigin), job.set_solver_folder(o.folder);
  job.set_ranks(o.ranks), job.set_worker(o.worker), job.set_workers(o.workers);
  job.set_threads(o.threads), job.set_isa(o.isa);
  job.set_snapshot(o.snapshot), job.set_snapshot_name(o.snapshotName);
  job.set_found_snapshot(o.foundSnapshot), job.set_drawn_seed(o.drawnSeed);
  job.set_weights(o.weights), job.set_weights_name(o.weightsName);
  job.set_snapshot_prefix(o.snapshotPrefix), job.set_published_prefix(o.publishedPrefix);
  job.set_resize(o.resize);
  return job;
}

void set(const ClusterSettings& s, wire::Job* job) {
  job->set_join_timeout(s.joinTimeout), job->set_step_timeout(s.stepTimeout);
  job->set_replacement(s.replacement), job->set_replacement_timeout(s.replacementTimeout);
  job->set_least_workers(s.leastWorkers), job->set_encrypted(s.encrypted);
  job->set_compare_all(s.compareAll);
  job->set_rebalance(s.rebalance), job->set_first_workers(s.firstWorkers);
}

train::RunOptions runOf(const wire::Job& job, const HostRows& rows) {
  train::RunOptions o;
  if (!o.solver.ParseFromString(job.solver()))
    badData("the job's solver cannot be read; host and executable are of different versions");
  o.netOrigin = job.net_origin(), o.folder = job.solver_folder();
  o.ranks = job.ranks(), o.worker = job.worker(), o.workers = job.workers();
  o.threads = job.threads(), o.isa = job.isa();
  o.snapshot = job.snapshot(), o.snapshotName = job.snapshot_name();
  o.foundSnapshot = job.found_snapshot(), o.drawnSeed = job.drawn_seed();
  o.weights = job.weights(), o.weightsName = job.weights_name();
  o.snapshotPrefix = job.has_snapshot_prefix() ? job.snapshot_prefix() : o.solver.snapshot_prefix();
  o.publishedPrefix = job.published_prefix();
  o.trainSource = sourceOf(rows.train, rows.trainRecords, job.train_source());
  o.testSource = sourceOf(rows.test, rows.testRecords, job.test_source());
  o.resize = job.resize(), o.compareAll = job.compare_all();
  o.log = job.worker() == 0 || job.log();
  return o;
}

cluster::CoordinatorOptions coordinatorOf(const wire::Job& job) {
  cluster::CoordinatorOptions o;
  if (!job.host().empty()) o.host = job.host();
  o.secret = cluster::secretOf(job);
  o.members = job.workers();
  o.joinTimeout = job.join_timeout(), o.stepTimeout = job.step_timeout();
  o.jobDigest = jobDigest(job);
  o.replacement = cluster::replacementNamed(job.replacement());
  o.replacementTimeout = job.replacement_timeout(), o.least = job.least_workers();
  o.first = job.first_workers();
  return o;
}

std::unique_ptr<cluster::Work> workOf(const wire::Job& job) {
  const bool rowsStay = job.train_rows().sharded() || job.test_rows().sharded();
  return std::make_unique<Training>(job.ranks(), job.workers(), job.model_home(), rowsStay, job.rebalance());
}

std::string jobDigest(const wire::Job& job) {
  return sha256Hex(fmt::format("{}|{}|{}|{}|", CREMA_VERSION, job.ranks(), job.workers(), job.solver().size()) +
                   job.solver());
}

std::string changeOf(const wire::Event& event) {
  if (event.has_lost())
    return fmt::format("{}; {}", event.lost().story(), event.lost().last() ? "no worker is left" : "the run goes on");
  if (!event.has_regrouped()) return "";
  const auto& r = event.regrouped();
  std::string came;
  for (const int w : r.came()) came += fmt::format("{}{}", came.empty() ? "" : ", ", w);
  return fmt::format("training goes on with {} worker(s){} from iteration {}, after {:.2f} s{}", r.workers(),
                     came.empty() ? "" : fmt::format(" (new: {})", came), r.iteration(), r.pause(),
                     r.has_seen() ? fmt::format(" ({:.2f} s since the loss was seen)", r.seen()) : "") +
         (r.shares().empty() ? "" : "; " + r.shares());
}

Error endedEarly(const solver::Solver& solver, const train::TrainOptions& o, train::Request told, bool saved) {
  const std::string at =
      fmt::format("{} stopped at iteration {} of {}",
                  train::wantsEnd(told) ? "a worker was told to end (SIGTERM), so training has"
                                        : "training was asked to end, and waited for workers that did not come: it has",
                  solver.iteration(), solver.param().max_iter());
  if (!saved || o.snapshotPrefix.empty()) return {ErrorKind::kStopped, at + ", without a snapshot"};
  const solver::SnapshotFiles files =
      solver.snapshotNames(o.publishedPrefix.empty() ? o.snapshotPrefix : o.publishedPrefix);
  return {ErrorKind::kStopped,
          fmt::format("{}; go on from there with -snapshot {} (on Spark with -weights {} beside it)", at, files.state,
                      files.model)};
}

control::ToCoordinator::Spent messageOf(const train::Spent& spent) {
  control::ToCoordinator::Spent m;
  m.set_passes(spent.passes), m.set_pass_seconds(spent.passSeconds);
  m.set_steps(spent.steps), m.set_waited_seconds(spent.waitedSeconds);
  return m;
}

train::Spent spentOf(const control::ToCoordinator::Spent& m) {
  return {m.passes(), m.pass_seconds(), m.steps(), m.waited_seconds()};
}

wire::Event toEvent(const train::Progress& p) {
  wire::Event event;
  auto* out = event.mutable_progress();
  out->set_iteration(p.iteration), out->set_max_iter(p.maxIter);
  out->set_loss(p.loss), out->set_lr(p.rate);
  out->set_records_per_second(p.recordsPerSecond);
  if (p.secondsLeft >= 0) out->set_seconds_left(p.secondsLeft);
  out->set_feed_share(p.shares.feed), out->set_compute_share(p.shares.compute);
  out->set_exchange_share(p.shares.exchange), out->set_wait_share(p.shares.wait);
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

}  // namespace crema::worker
