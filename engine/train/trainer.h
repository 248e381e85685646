// The training loop of one worker: its ranks one after the other, the sum over all ranks, one identical update
// everywhere.
//
// Every step: test when due -> train/step.h: the gradients of all ranks -> update -> requests (stop, snapshot; all
// workers see the same ones, as they travel with the gradient) -> snapshot when due. After every step all workers hold
// the same bits: weights, history, iteration. A stop is agreed on before the first step and with the values of a test
// as well: then no further step begins.
//
// The run may go on with other workers: after run() has paused, or has thrown between two updates, changeWorkers() and
// run() go on from the last update. So that nothing is lost with a worker, all of them hold what ranks carry from step to
// step as well, and what was agreed and not yet done is asked for anew.
#pragma once
#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "solver/solver.h"
#include "train/pace.h"
#include "train/request.h"
#include "train/spent.h"
#include "train/step.h"

namespace crema::train {

struct Progress {
  int64_t iteration = 0, maxIter = 0;
  double loss = 0, rate = 0, recordsPerSecond = 0;
  double secondsLeft = -1;  // below 0 as long as it cannot be known
  TimeShares shares;
};

struct TestOutput {
  std::string name;
  std::vector<float> values;
  double lossWeight = 0;
};

// Called from the training thread. Any may be empty.
struct TrainHooks {
  std::function<void()> start;           // of an iteration, after its tests
  std::function<void()> gradientsReady;  // the sum over ranks is in the net's diffs, where this process has one rank
  std::function<void(const Progress&)> progress;  // every iteration
  std::function<void(const Spent&)> spent;        // every iteration: since the trainer was made
  std::function<void(int64_t iteration, int net, const std::vector<TestOutput>&)> test;  // lead worker only
  std::function<void(int64_t iteration, const solver::SnapshotFiles&)> snapshot;         // lead worker only
  std::function<void(int64_t iteration)> beat;  // before every batch, of training and of tests
  std::function<Request()> request;  // polled before the first step, after every rank's pass and before test batches
  // How many snapshots all processes of the run have been asked for, as far as this one has heard: polled likewise. One is
  // taken for each, behind the first step in which any of them has heard of it.
  std::function<int64_t()> snapshots;
};

struct TrainOptions {
  int ranks = 1;
  collective::RankRange myRanks{0, 1};
  std::string snapshotPrefix;   // snapshots: <prefix>_iter_<n>...
  std::string publishedPrefix;  // where a host moves them, for learned_net in a .solverstate. Empty: as above
  int64_t recordsPerStep = 0;   // over all ranks, for records/s
  int64_t snapshotAt = -1;      // of the snapshot that is resumed from, where it lies where this run would write it
  // Also log Caffe's lines when this is not the lead worker, as each worker has its own log.
  bool log = false;
};

class Trainer {
 public:
  // exchange: nullptr when this process holds all ranks. Float nets only.
  Trainer(solver::Solver& solver, collective::Exchange* exchange, const TrainOptions& options, TrainHooks hooks);
  // To max_iter, or until a stop or a pause is agreed on. After what it throws the state is that of the last update.
  void run();
  void iterate(int64_t iterations);  // run() without the last snapshot, display and tests
  bool stopped() const { return stopped_; }
  bool paused() const { return paused_; }  // run() has returned before the end, for changeWorkers()

  // From the next run() on: the ranks of this process, `workers` processes in all, and their exchange; nullptr: alone.
  void changeWorkers(collective::Exchange* exchange, collective::RankRange mine, int workers);
  // Of the last snapshot: it is where it belongs, or a process that is still there brings it; behind it none is taken. -1: none.
  void knowsSnapshot(int64_t iteration) { snapshotAt_ = std::max(iteration, options_.snapshotAt); }
  void leaveExchange();  // which may end then; changeWorkers() comes before run()
  // Called by all workers of the exchange: those for which behind(w) holds take the state of worker `from`: weights,
  // history, iteration, and what ranks carry.
  void catchUp(int from, const std::function<bool(int)>& behind);
  // A snapshot by this process, whoever leads, of the state of the last update.
  void snapshotAlone();
  bool ended() const;  // stopped before max_iter by a kEnd of any worker
  double seconds() const { return seconds_; }

 private:
  bool lead() const { return options_.myRanks.lo == 0; }
  int workers() const { return exchange_ ? exchange_->workers() : 1; }
  bool logs() const { return lead() || options_.log; }
  void step();
  Request requested();  // polled here, not yet sent with a sum
  Request asked() const;
  void beat();
  bool stops(Request r) const;
  void begin();
  void advance(int64_t iterations, bool goesOn);
  void repeatBorder();
  void shareCarried();
  void restoreCarried();
  Step::Sum sum(const std::function<double(int rank, const Step::Done& done)>& pass,
                Step::Passes passes = Step::Passes::kBothWays);
  void agreeToBegin();
  void testAll();
  void testNet(int net);
  std::vector<float> testValues(int net, int batches, int width);
  void logTest(int net, std::vector<double> mean);
  bool displays() const { return solver_.param().display() && solver_.iteration() % solver_.param().display() == 0; }
  void logDisplay(double loss);
  void report(double loss);
  Waits waits() const {
    Waits w = exchangedBefore_;
    if (step_) w.exchange += step_->exchanged(), w.others += step_->waitedForOthers();
    w.records = solver_.waitedForRecords();
    return w;
  }  // so far
  void takeSnapshot();
  void keepSum(const float* gradient);
  void showSum();
  void displayAtEnd();
  void lastTests();
  void finish();

  solver::Solver& solver_;
  collective::Exchange* exchange_;
  TrainOptions options_;
  TrainHooks hooks_;
  std::optional<Step> step_;
  std::vector<char> carried_;           // by rank, as of the last update; empty before the first one
  std::vector<float> sum_;              // snapshot_diff: the gradient of the last update; empty before the first one
  Request requested_ = Request::kNone;  // polled here, not yet sent with a sum
  Request agreed_ = Request::kNone;     // of all workers, from the last sum
  int64_t granted_ = 0;  // of the snapshots that all are asked for: part of the state, as the iteration is
  // begun_: run() has been called, or the state is another worker's.
  bool stopped_ = false, paused_ = false, begun_ = false, snapshotTaken_ = false;
  int64_t snapshotAt_ = options_.snapshotAt;  // of the last snapshot, of any process
  double lastDisplay_ = 0, seconds_ = 0;
  Waits exchangedBefore_;  // by earlier steps' objects
  Spent spent_;
  int64_t lastDisplayIteration_ = 0;
  std::vector<double>
      shown_;  // outputs of the first of my ranks, where they are displayed: rank 0's, whoever else is here
  Pace pace_;
};

}  // namespace crema::train
