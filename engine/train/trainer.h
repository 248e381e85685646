// The training loop of one worker: its ranks one after the other, the sum over all ranks, one identical update
// everywhere.
//
// Every step: test when due -> gradient of each of my ranks, added as far as they form whole subtrees -> all-reduce ->
// update -> requests (stop, snapshot: agreed by all, because they travel with the gradient) -> snapshot when due. After
// every step all workers hold the same bits: weights, history, iteration.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "collective/mesh.h"
#include "solver/solver.h"

namespace crema {

struct Progress {
  int64_t iteration = 0, maxIter = 0;
  double loss = 0, rate = 0, recordsPerSecond = 0, secondsLeft = 0;
};

struct TestOutput {
  std::string name;
  std::vector<float> values;
  double lossWeight = 0;
};

enum class Request { kNone, kSnapshot, kStop };

// Called from the training thread. Any may be empty.
struct TrainHooks {
  std::function<void()> start;           // of an iteration, behind its tests
  std::function<void()> gradientsReady;  // the sum over ranks is in the net's diffs, where this process has one rank
  std::function<void(const Progress&)> progress;                                         // every iteration
  std::function<void(int64_t iteration, int net, const std::vector<TestOutput>&)> test;  // lead worker only
  std::function<void(int64_t iteration, const SnapshotFiles&)> snapshot;                 // lead worker only
  std::function<void(int64_t iteration)> beat;  // before every rank's pass and every test batch
  std::function<Request()> request;             // polled once per iteration
};

struct TrainOptions {
  int ranks = 1;
  RankRange myRanks{0, 1};
  std::string snapshotPrefix;   // snapshots: <prefix>_iter_<n>...
  std::string publishedPrefix;  // where a host moves them; what a .solverstate then calls its model. Empty: as above
  int64_t recordsPerStep = 0;   // over all ranks, for records/s
  bool log = false;             // Caffe's lines also when this is not the lead worker: its log is read by itself
};

class Trainer {
 public:
  // exchange: nullptr when this process holds all ranks. Float nets only.
  Trainer(Solver& solver, Exchange* exchange, const TrainOptions& options, TrainHooks hooks);
  void run();                        // to max_iter, or until a stop is agreed on
  void iterate(int64_t iterations);  // run() without what comes at its end
  bool stopped() const { return stopped_; }
  double seconds() const { return seconds_; }

 private:
  bool lead() const { return options_.myRanks.lo == 0; }
  bool logs() const { return lead() || options_.log; }
  const float* reducedGradient();  // total over all ranks: the net's layout, spare elements behind
  float* sumOfRanks(RankRange node, size_t depth);
  float* buffer(size_t i);
  void step();
  void testAll();
  void testNet(int net);
  std::vector<float> testValues(int net, int batches, int width);
  void logTest(int net, std::vector<double> mean);
  void logDisplay(double loss);
  void report(double loss);
  void takeSnapshot();
  void displayAtEnd(bool statistics);
  void finish();

  Solver& solver_;
  Exchange* exchange_;
  TrainOptions options_;
  TrainHooks hooks_;
  std::vector<RankRange> subtrees_;
  std::vector<std::vector<float>> buffers_;
  Request request_ = Request::kNone;
  bool stopped_ = false, snapshotTaken_ = false;
  bool looks_ = false;  // ranks go forward only
  double started_ = 0, lastDisplay_ = 0, seconds_ = 0;
  int64_t firstIteration_ = 0, lastDisplayIteration_ = 0;
};

}  // namespace crema
