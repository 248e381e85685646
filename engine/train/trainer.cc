#include "train/trainer.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include "base/deadline.h"
#include "base/log.h"
#include "data/batch_feed.h"
#include "solver/outputs.h"

namespace crema::train {
namespace {

// Caffe shares weights anew before each test, and says which layers have no part in it.
void logIgnored(const net::Net& train, const net::Net& test) {
  std::set<std::string> names;
  for (const auto& layer : test.layers()) names.insert(layer->name());
  for (const auto& layer : train.layers())
    if (!names.count(layer->name())) LOG_INFO("Ignoring source layer {}", layer->name());
}

}  // namespace

Trainer::Trainer(solver::Solver& solver, collective::Exchange* exchange, const TrainOptions& options, TrainHooks hooks)
    : solver_(solver), exchange_(exchange), options_(options), hooks_(std::move(hooks)) {
  step_.emplace(solver, exchange, options.myRanks, options.ranks);
}

void Trainer::begin() {
  begun_ = true;
  const int maxIter = solver_.param().max_iter();
  if (logs()) {
    LOG_INFO("Solving {}", solver_.net().name());
    LOG_INFO("Learning Rate Policy: {}", solver_.param().lr_policy());
  }
  if (lead() && solver_.iteration() >= maxIter)
    LOG_WARNING("nothing to do: iteration {} is reached, max_iter is {}", solver_.iteration(), maxIter);
  if (lead() && solver_.param().base_lr() == 0) LOG_WARNING("base_lr is 0 or not set: nothing will be learnt");
}

void Trainer::run() {
  const bool goesOn = begun_;
  if (!goesOn) begin(), solver_.resetSmoothedLoss();
  paused_ = false;
  const int64_t left = solver_.param().max_iter() - solver_.iteration();
  advance(left, goesOn);
  if (!paused_) finish(), showSum();
}

void Trainer::iterate(int64_t iterations) {
  solver_.resetSmoothedLoss();
  advance(iterations, false);
}

void Trainer::advance(int64_t iterations, bool goesOn) {
  const double started = lastDisplay_ = monotonicSeconds();
  lastDisplayIteration_ = solver_.iteration();
  (pace_ = Pace()).mark(started, solver_.iteration(), waits());
  const int64_t end = lastDisplayIteration_ + iterations;
  if (iterations > 0 || exchange_) agreeToBegin();
  if (goesOn) repeatBorder();
  while (solver_.iteration() < end && !stopped_ && !paused_) step();
  seconds_ += monotonicSeconds() - started;
}

void Trainer::step() {
  if (solver_.testDue()) testAll();
  if (stopped_) return;
  if (hooks_.start) hooks_.start();
  const Step::Sum sum = this->sum([this](int rank, const Step::Done& done) {
    const double from = monotonicSeconds(), loss = solver_.computeGradient(rank, done, [this] { beat(); });
    spent_.passSeconds += monotonicSeconds() - from, ++spent_.passes;
    if (rank == options_.myRanks.lo && logs() && displays()) shown_ = solver::outputValues(solver_.net());
    return loss;
  });
  agreed_ = sum.requests;
  requested_ = Request::kNone;
  shareCarried();  // may throw, and then the step is done anew: nothing of it counts before
  const double loss = solver_.smoothLoss(sum.loss);
  if (displays()) logDisplay(loss);
  if (hooks_.gradientsReady) hooks_.gradientsReady();
  solver_.applyUpdate(sum.gradient, options_.ranks);
  if (wantsCounted(agreed_)) ++granted_, agreed_ = withoutCounted(agreed_) | Request::kSnapshot;
  if (solver_.param().snapshot_diff()) keepSum(sum.gradient);
  report(loss);
  ++spent_.steps, spent_.waitedSeconds = waits().exchange + waits().others;
  if (hooks_.spent) hooks_.spent(spent_);
  stopped_ = stops(agreed_);
  paused_ = wantsPause(agreed_) && !wantsStop(agreed_);
  const int every = solver_.param().snapshot();
  snapshotTaken_ = wantsSnapshot(agreed_) || (every > 0 && solver_.iteration() % every == 0);
  if (snapshotTaken_) takeSnapshot();
}

Request Trainer::requested() {
  if (hooks_.request) requested_ = requested_ | hooks_.request();
  return asked();
}

// One that it hears of late has been granted in the step in which another worker heard of it.
Request Trainer::asked() const {
  return hooks_.snapshots && hooks_.snapshots() > granted_ ? requested_ | Request::kCounted : requested_;
}

void Trainer::beat() {
  if (hooks_.beat) hooks_.beat(solver_.iteration());
}

Step::Sum Trainer::sum(const std::function<double(int rank, const Step::Done& done)>& pass, Step::Passes passes) {
  const auto passOf = [&](int rank, const Step::Done& done) {
    beat();
    return pass(rank, done);
  };
  return step_->run(
      passOf, [&] { return requested(); }, passes);
}

bool Trainer::ended() const { return wantsEnd(agreed_) && solver_.iteration() < solver_.param().max_iter(); }

// Who is terminated behind the last step has a whole model, and says how good it is, as an undisturbed run does.
bool Trainer::stops(Request r) const {
  return wantsStop(r) && !(wantsEnd(r) && solver_.iteration() >= solver_.param().max_iter());
}

// Applies a stop that was requested before the first step: then no step and no test batch is computed. And agrees on which
// gradients are left to the update.
void Trainer::agreeToBegin() {
  const size_t spare = size_t{net::Net::kSpare};
  std::vector<float> votes(spare + static_cast<size_t>(workers()), 0.f);  // each worker's threads behind the requests
  const int threads = solver_.kernels().pool().size();
  writeRequest(requested(), votes.data());
  votes[spare + static_cast<size_t>(exchange_ ? exchange_->worker() : 0)] = static_cast<float>(threads);
  step_->gather(votes, collective::Tag::beginning(solver_.iteration()));
  agreed_ = requestOf(votes.data(), workers());
  stopped_ = stops(agreed_);
  step_->leaveGradients(static_cast<int>(*std::min_element(votes.begin() + spare, votes.end())));
}

void Trainer::testAll() {
  for (size_t i = 0; i < solver_.testNets() && !stopped_; ++i) testNet(static_cast<int>(i));
}

// A row of `width` values and a 1 for every batch of a test; zeros for a batch without decodable records. Each worker
// computes its own batches, and Step::gather() brings them together; requests travel behind the rows.
std::vector<float> Trainer::testValues(int net, int batches, int width) {
  const auto index = static_cast<size_t>(net);
  const int me = exchange_ ? exchange_->worker() : 0, all = exchange_ ? exchange_->workers() : 1;
  const size_t count = static_cast<size_t>(batches) * static_cast<size_t>(width + 1);
  std::vector<float> values(count + kRequestBits, 0.f);
  const kernels::FrozenWeights frozen(solver_.kernels());
  const data::TestSharding sharding{solver_.testCycle(index), all};
  for (int64_t b = 0; b < batches; ++b) {
    const int64_t batch = solver_.firstTestBatch(index) + b;
    if (stops(requested())) break;
    if (sharding.owner(batch) != me) continue;
    beat();
    try {
      const auto row = solver_.testBatch(index, batch);
      solver::checkOutputs(solver_.testNet(index), row.size() - 1, static_cast<size_t>(width) - 1);
      std::copy(row.begin(), row.end(), values.begin() + b * (width + 1));
      values[static_cast<size_t>((b + 1) * (width + 1) - 1)] = 1;
    } catch (const data::EmptyBatch& e) {
      LOG_WARNING("a test batch is left out: {}", e.what());
    }
  }
  writeRequest(asked(), values.data() + count);
  step_->gather(values, collective::Tag::test(net, solver_.iteration()));
  agreed_ = requestOf(values.data() + count, workers());
  stopped_ = stops(agreed_);
  values.resize(count);
  return values;
}

void Trainer::testNet(int i) {
  const auto index = static_cast<size_t>(i);
  const int batches = solver_.param().test_iter(i), width = solver_.testValues(index);
  if (logs()) {
    LOG_INFO("Iteration {}, Testing net (#{})", solver_.iteration(), i);
    logIgnored(solver_.net(), solver_.testNet(index));
  }
  if (batches == 0) return;
  const std::vector<float> values = testValues(i, batches, width);
  if (stopped_) {
    if (logs()) LOG_INFO("Test interrupted.");
    return;
  }
  std::vector<double> mean(static_cast<size_t>(width) + 1, 0.0);
  for (size_t k = 0; k < values.size(); ++k) mean[k % mean.size()] += values[k];
  const double counted = mean.back();
  mean.pop_back();
  if (counted == 0) badData("no record of the {} batches of a test can be decoded; the log names the first", batches);
  for (double& m : mean) m /= counted;
  if (logs()) logTest(i, mean);
}

void Trainer::logTest(int i, std::vector<double> mean) {
  if (solver_.param().test_compute_loss()) LOG_INFO("Test loss: {:.6g}", mean.back());
  mean.pop_back();
  const net::Net& net = solver_.testNet(static_cast<size_t>(i));
  solver::logOutputs(net, mean, "Test net output");
  if (!hooks_.test) return;
  std::vector<TestOutput> outputs;
  auto value = mean.begin();
  for (const auto& name : net.outputs()) {
    const auto end = value + net.blob(name).count();
    outputs.push_back({name, {value, end}, net.outputLossWeight(name)});
    value = end;
  }
  hooks_.test(solver_.iteration(), i, outputs);
}

void Trainer::logDisplay(double loss) {
  if (!logs()) return;
  const double now = monotonicSeconds(), elapsed = now - lastDisplay_;
  const int64_t done = solver_.iteration() - lastDisplayIteration_;
  LOG_INFO("Iteration {} ({:.6g} iter/s, {:.6g}s/{} iters), loss = {:.6g}", solver_.iteration(),
           elapsed > 0 ? static_cast<double>(done) / elapsed : 0.0, elapsed, solver_.param().display(), loss);
  lastDisplay_ = now;
  lastDisplayIteration_ = solver_.iteration();
  solver::logOutputs(solver_.net(), shown_, "Train net output");
}

void Trainer::report(double loss) {
  if (!hooks_.progress) return;
  Progress p;
  p.iteration = solver_.iteration() - 1;  // the one whose loss this is
  p.maxIter = solver_.param().max_iter();
  p.loss = loss, p.rate = solver_.lastRate();
  pace_.mark(monotonicSeconds(), p.iteration + 1, waits());
  p.shares = pace_.shares();
  const double step = pace_.secondsPerStep();
  if (step > 0) p.recordsPerSecond = static_cast<double>(options_.recordsPerStep) / step;
  const int64_t left = p.maxIter - p.iteration - 1;
  if (pace_.settled() || left == 0) p.secondsLeft = step * static_cast<double>(left);
  hooks_.progress(p);
}

void Trainer::takeSnapshot() {
  if (lead()) snapshotAlone();
}

void Trainer::snapshotAlone() {
  if (options_.snapshotPrefix.empty()) return;
  showSum();
  const solver::SnapshotFiles files = solver_.snapshot(options_.snapshotPrefix, options_.publishedPrefix);
  snapshotAt_ = solver_.iteration();
  if (hooks_.snapshot) hooks_.snapshot(solver_.iteration(), files);
}

// One more forward pass, as in Caffe, for the loss that is logged. A net with running statistics makes it for every
// rank on all workers: it moves the statistics, and the last test sees them moved; finish() then sets them back, as
// display must not change the model. Any other net makes it for the first rank of each worker that logs.
void Trainer::displayAtEnd() {
  net::RunningStatistics& statistics = solver_.net().statistics();
  if (statistics.empty() && !logs()) return;
  double loss = 0;
  if (!statistics.empty()) {
    const Step::Sum sum =
        this->sum([this](int rank, const Step::Done&) { return solver_.evaluate(rank); }, Step::Passes::kForward);
    loss = sum.loss;
    statistics.move(sum.gradient, options_.ranks, 1);
  } else {
    loss = solver_.evaluate(options_.myRanks.lo);
  }
  const double smooth = solver_.smoothLoss(loss);
  if (logs()) LOG_INFO("Iteration {}, loss = {:.6g}", solver_.iteration(), smooth);
}

void Trainer::finish() {
  const auto& p = solver_.param();
  const bool wanted = (p.snapshot_after_train() || wantsSnapshot(agreed_)) && !snapshotTaken_;
  if (wanted && snapshotAt_ != solver_.iteration()) takeSnapshot();
  if (stopped_) {
    if (logs()) LOG_INFO("Optimization stopped early.");
    return;
  }
  lastTests();
  if (logs()) LOG_INFO("Optimization Done.");
}

// Leaves the state as it is, also by an error: the run may go on with other workers.
void Trainer::lastTests() {
  const Blob before = solver_.net().statistics().save();
  const std::vector<double> position = solver_.position();
  try {
    if (displays()) displayAtEnd();
    if (solver_.testDue()) testAll();
  } catch (...) {
    solver_.net().statistics().restore(before);
    solver_.setPosition(position);
    throw;
  }
  solver_.net().statistics().restore(before);
}

}  // namespace crema::train
