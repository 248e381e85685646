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

// What the spare elements of a gradient carry.
enum Spare { kLoss = 0, kVotes = 1 };
constexpr int kWishes = 3;  // bits of a Request; a vote for each

// Caffe shares weights anew before each test, and says which layers have no part in it.
void logIgnored(const net::Net& train, const net::Net& test) {
  std::set<std::string> names;
  for (const auto& layer : test.layers()) names.insert(layer->name());
  for (const auto& layer : train.layers())
    if (!names.count(layer->name())) LOG_INFO("Ignoring source layer {}", layer->name());
}

}  // namespace

Trainer::Trainer(solver::Solver& solver, collective::Exchange* exchange, const TrainOptions& options, TrainHooks hooks)
    : solver_(solver),
      exchange_(exchange),
      options_(options),
      hooks_(std::move(hooks)),
      subtrees_(collective::wholeSubtrees(options.myRanks, options.ranks)) {
  if (solver_.net().flatData().dtype() != DType::kFloat32) internal("training runs in float; double is for checking");
}

void Trainer::run() {
  const int maxIter = solver_.param().max_iter();
  if (logs()) {
    LOG_INFO("Solving {}", solver_.net().name());
    LOG_INFO("Learning Rate Policy: {}", solver_.param().lr_policy());
  }
  if (lead() && solver_.iteration() >= maxIter)
    LOG_WARNING("nothing to do: iteration {} is reached, max_iter is {}", solver_.iteration(), maxIter);
  if (lead() && solver_.param().base_lr() == 0) LOG_WARNING("base_lr is 0 or not set: nothing will be learnt");
  iterate(maxIter - solver_.iteration());
  finish();
}

void Trainer::iterate(int64_t iterations) {
  solver_.resetSmoothedLoss();
  const double started = lastDisplay_ = monotonicSeconds();
  lastDisplayIteration_ = solver_.iteration();
  (pace_ = Pace()).mark(started, solver_.iteration());
  const int64_t end = lastDisplayIteration_ + iterations;
  if (iterations > 0) agreeToBegin();
  while (solver_.iteration() < end && !stopped_) step();
  seconds_ = monotonicSeconds() - started;
}

void Trainer::step() {
  if (solver_.testDue()) testAll();
  if (stopped_) return;
  if (hooks_.start) hooks_.start();
  const float* total = reducedGradient();
  const float* spare = total + solver_.net().flatData().count();
  const double loss = solver_.smoothLoss(static_cast<double>(spare[kLoss]) / options_.ranks);
  const bool stop = stopAgreed(spare + kVotes);
  wished_ = Request::kNone;
  if (solver_.param().display() && solver_.iteration() % solver_.param().display() == 0) logDisplay(loss);
  if (hooks_.gradientsReady) hooks_.gradientsReady();
  solver_.applyUpdate(total, options_.ranks);
  report(loss);
  stopped_ = stop;
  const int every = solver_.param().snapshot();
  snapshotTaken_ = has(agreed_, 0) || (every > 0 && solver_.iteration() % every == 0);
  if (snapshotTaken_) takeSnapshot();
}

void Trainer::poll() {
  if (hooks_.request) wished_ = wished_ | hooks_.request();
}

void Trainer::writeVotes(float* to) const {
  for (unsigned bit = 0; bit < kWishes; ++bit) to[bit] = has(wished_, bit) ? 1.f : 0.f;
}

// Of the sum of everybody's votes, which is the same on every worker.
bool Trainer::stopAgreed(const float* votes) {
  agreed_ = Request::kNone;
  for (unsigned bit = 0; bit < kWishes; ++bit)
    if (votes[bit] > 0) agreed_ = agreed_ | static_cast<Request>(1u << bit);
  return has(agreed_, 1);
}

bool Trainer::ended() const { return has(agreed_, 2) && solver_.iteration() < solver_.param().max_iter(); }

// The workers' values added up: where one has a value, the others have zeros.
void Trainer::gather(std::vector<float>& values, int64_t step) {
  const std::vector<float> zeros(values.size(), 0.f), mine = values;
  std::vector<const float*> pieces(subtrees_.size(), zeros.data());
  pieces[0] = mine.data();
  exchange_->allReduce(pieces, values.data(), static_cast<int64_t>(values.size()), step);
}

// A stop that was wished for while nets were built or others awaited: not one step, not one test batch.
void Trainer::agreeToBegin() {
  poll();
  std::vector<float> votes(static_cast<size_t>(net::Net::kSpare), 0.f);
  writeVotes(votes.data());
  if (exchange_) gather(votes, int64_t{1} << 47 | solver_.iteration());
  stopped_ = stopAgreed(votes.data());
}

float* Trainer::buffer(size_t i) {
  while (buffers_.size() <= i) buffers_.emplace_back(static_cast<size_t>(solver_.net().flatDiff().count()));
  return buffers_[i].data();
}

// Sum of the ranks of a whole subtree in tree order. The left operand waits in buffer(depth) while the right one is
// computed.
float* Trainer::sumOfRanks(collective::RankRange node, size_t depth) {
  net::Net& net = solver_.net();
  if (node.hi - node.lo == 1) {
    if (hooks_.beat) hooks_.beat(solver_.iteration());
    float* gradient = net.flatDiff().mutableDiff<float>();
    const double loss = looks_ ? solver_.look(node.lo) : solver_.computeGradient(node.lo);
    float* spare = gradient + net.flatData().count();
    std::fill_n(spare, net::Net::kSpare, 0.f);
    spare[kLoss] = static_cast<float>(loss);
    poll();
    writeVotes(spare + kVotes);
    return gradient;
  }
  const int mid = collective::treeMiddle(node.lo, node.hi);
  const int64_t count = net.flatDiff().count();
  float* left = buffer(depth);
  const float* first = sumOfRanks({node.lo, mid}, depth);
  if (first != left) std::memcpy(left, first, static_cast<size_t>(count) * sizeof(float));
  const float* right = sumOfRanks({mid, node.hi}, depth + 1);
  for (int64_t i = 0; i < count; ++i) left[i] += right[i];
  return left;
}

const float* Trainer::reducedGradient() {
  std::vector<const float*> pieces;
  size_t depth = 0;
  for (const collective::RankRange& node : subtrees_) {
    const float* sum = sumOfRanks(node, depth);
    if (subtrees_.size() > 1) {  // the net's own gradient is needed for the next piece
      float* kept = buffer(depth++);
      if (sum != kept) std::memcpy(kept, sum, static_cast<size_t>(solver_.net().flatDiff().count()) * sizeof(float));
      sum = kept;
    }
    pieces.push_back(sum);
  }
  if (!exchange_) return pieces[0];
  float* total = solver_.net().flatDiff().mutableDiff<float>();
  exchange_->allReduce(pieces, total, solver_.net().flatDiff().count(), solver_.iteration());
  return total;
}

void Trainer::testAll() {
  for (size_t i = 0; i < solver_.testNets() && !stopped_; ++i) testNet(static_cast<int>(i));
}

// Rows of `width` values and a one, of every batch of a test; of a batch without a record that can be decoded, zeros.
// Every worker computes its share, the rest is gathered by adding zeros: the same bits for any W. Votes behind them.
std::vector<float> Trainer::testValues(int net, int batches, int width) {
  const auto index = static_cast<size_t>(net);
  const int me = exchange_ ? exchange_->worker() : 0, all = exchange_ ? exchange_->workers() : 1;
  const size_t count = static_cast<size_t>(batches) * static_cast<size_t>(width + 1);
  std::vector<float> values(count + kWishes, 0.f);
  const data::TestDealing dealing{solver_.testCycle(index), all};
  for (int64_t b = 0; b < batches; ++b) {
    const int64_t batch = solver_.firstTestBatch(index) + b;
    poll();
    if (has(wished_, 1)) break;
    if (dealing.owner(batch) != me) continue;
    if (hooks_.beat) hooks_.beat(solver_.iteration());
    try {
      const auto row = solver_.testBatch(index, batch);
      solver::checkOutputs(solver_.testNet(index), row.size() - 1, static_cast<size_t>(width) - 1);
      std::copy(row.begin(), row.end(), values.begin() + b * (width + 1));
      values[static_cast<size_t>((b + 1) * (width + 1) - 1)] = 1;
    } catch (const data::EmptyBatch& e) {
      LOG_WARNING("a test batch is left out: {}", e.what());
    }
  }
  writeVotes(values.data() + count);
  if (exchange_) gather(values, (int64_t{net} + 1) << 48 | solver_.iteration());
  stopped_ = stopAgreed(values.data() + count);
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
  solver::logOutputs(solver_.net(), solver::outputValues(solver_.net()), "Train net output");
}

void Trainer::report(double loss) {
  if (!hooks_.progress) return;
  Progress p;
  p.iteration = solver_.iteration() - 1;  // the one whose loss this is
  p.maxIter = solver_.param().max_iter();
  p.loss = loss, p.rate = solver_.lastRate();
  pace_.mark(monotonicSeconds(), p.iteration + 1);
  const double step = pace_.secondsPerStep();
  if (step > 0) p.recordsPerSecond = static_cast<double>(options_.recordsPerStep) / step;
  p.secondsLeft = step * static_cast<double>(p.maxIter - p.iteration - 1);
  hooks_.progress(p);
}

void Trainer::takeSnapshot() {
  if (!lead()) return;
  const solver::SnapshotFiles files = solver_.snapshot(options_.snapshotPrefix, options_.publishedPrefix);
  if (hooks_.snapshot) hooks_.snapshot(solver_.iteration(), files);
}

// One more forward pass, as in Caffe. Running statistics move by it, of every rank, and the tests behind it see them
// so; then they are what they were: display must not change the model.
void Trainer::displayAtEnd(bool statistics) {
  if (!statistics && !logs()) return;
  looks_ = true;
  double loss = 0;
  if (statistics) {
    const float* total = reducedGradient();
    loss = static_cast<double>(total[solver_.net().flatData().count() + kLoss]) / options_.ranks;
    solver_.moveStatistics(total, options_.ranks, 1);
  } else {
    loss = solver_.look(options_.myRanks.lo);
  }
  looks_ = false;
  const double smooth = solver_.smoothLoss(loss);
  if (logs()) LOG_INFO("Iteration {}, loss = {:.6g}", solver_.iteration(), smooth);
}

void Trainer::finish() {
  const auto& p = solver_.param();
  if ((p.snapshot_after_train() || has(agreed_, 0)) && !snapshotTaken_ && !options_.snapshotPrefix.empty())
    takeSnapshot();
  if (stopped_) {
    if (logs()) LOG_INFO("Optimization stopped early.");
    return;
  }
  const std::vector<Blob> before = solver_.statistics();
  if (p.display() && solver_.iteration() % p.display() == 0) displayAtEnd(!before.empty());
  if (solver_.testDue()) testAll();
  solver_.setStatistics(before);
  if (logs()) LOG_INFO("Optimization Done.");
}

}  // namespace crema::train
