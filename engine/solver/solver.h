// The solver: one net, its test nets, the update rule and the iteration. A rank only selects batches here; the caller
// sums over ranks between computeGradient() and applyUpdate().
//
// Update, g the gradient averaged over ranks and iter_size: clip -> g += decay w (L2) or decay sign(w) (L1) -> the rule
// of the solver's type (kernels/updates), with rate lr_mult for its rate. Clipping happens before the division by
// iter_size and before decay, as in Caffe: if ||g|| > c then g *= c / ||g||. Running statistics take no part in that:
// the net moves them (net/running_statistics.h).
#pragma once
#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "net/net.h"
#include "net/scoring_plan.h"
#include "net/training_plan.h"

namespace crema::solver {

struct SolverOptions {
  kernels::Context* kernels = nullptr;
  const layers::LayerRegistry* registry = nullptr;  // nullptr: the built-in layers
  DType dtype = DType::kFloat32;
  layers::DataOptions trainData, testData;  // testData's ranks are ignored: test batches are one sequence
  uint64_t seed = 1;
  bool hostLooks = false;  // a host program may call forward() and backward() on the nets, and look at all their blobs
  std::string origin;      // what messages call nets that were inlined
  std::string folder;      // relative paths of the prototxt may start here
  bool log = true;         // write Caffe's log lines; one process of a cluster does
};

struct SnapshotFiles {
  std::string model, state;
};

// The snapshot with this prefix that has the largest iteration, with both its files; nullopt: there is none. Files get
// their names when they are whole; one with a file that was damaged since is passed over, with a warning, unless all are.
// Costs reading a state, and the model's outline.
std::optional<SnapshotFiles> newestSnapshot(const std::string& prefix);

// Removes what killed runs left of snapshots with this prefix (base/temporary.h).
void clearSnapshotLeftovers(const std::string& prefix);

class Solver {
 public:
  Solver(const caffe::SolverParameter& param, const SolverOptions& options);

  const caffe::SolverParameter& param() const { return param_; }
  caffe::SolverParameter& settings() { return param_; }  // base_lr, max_iter and display may change between iterations
  double rate() const;                                   // of the next update
  net::Net& net() { return *net_; }
  kernels::Context& kernels() { return *options_.kernels; }
  size_t testNets() const { return testNets_.size(); }
  net::Net& testNet(size_t i) { return *testNets_[i]; }
  int iteration() const { return iteration_; }
  Blob& history() { return history_; }  // histories x the net's flat layout

  // nullptr where a host looks. Where mayDefer(), its shareFactors() may leave gradients of several ranks to applyUpdate().
  net::TrainingPlan* plan() { return plan_ ? &*plan_ : nullptr; }
  bool mayDefer() const;
  // Gradient of this rank's iter_size batches of the present iteration, summed into net().flatDiff(); where
  // defersGradients(), those of inner products' weights are left to applyUpdate(). The mean loss is returned. An Error
  // names iteration and layer when the loss is not finite.
  // done(from), where it can be said, while the last batch goes backward: the part of the flat diff that holds gradients of
  // learnt parameters is complete from element `from` on.
  // further(): before each of the rank's batches but the first one. What it throws leaves.
  bool defersGradients() const;
  double computeGradient(int rank, const std::function<void(int64_t from)>& done = nullptr,
                         const std::function<void()>& further = nullptr);
  // The loss of one more batch of this rank, without gradients; running statistics collect its contribution.
  double evaluate(int rank);
  // gradient: flat, in the net's layout, summed over `ranks` ranks; not changed, except that the net's own diffs of
  // running statistics are cleared. Ends the iteration.
  void applyUpdate(const float* gradient, int ranks) { update<float>(gradient, ranks); }
  void applyUpdate(const double* gradient, int ranks) { update<double>(gradient, ranks); }
  double lastRate() const { return lastRate_; }  // of the last update
  double smoothLoss(double loss);                // mean over the last average_loss iterations, Caffe's rule
  void resetSmoothedLoss() { losses_.clear(); }

  // For a run whose workers change. Other ranks are this process's from the next step on.
  void assign(const std::vector<int>& myRanks, int testWorkers);
  void setLog(bool on) { options_.log = on; }
  void endPassesBy(const Interrupt* interrupt);  // as Net has it, for all nets
  // Where it stands, beside weights and history: iteration, stage of the policy, smoothed loss and the losses it is of.
  // The same length for the same solver.
  std::vector<double> position() const;
  void setPosition(const std::vector<double>& position);

  // Every element of every output of test net i, for batch `batch` of its endless sequence; then its loss. Unless
  // hostLooks, its other blobs have no defined values from then on (net/scoring_plan.h).
  std::vector<float> testBatch(size_t i, int64_t batch);
  int testValues(size_t i);  // length of testBatch's result
  // Test batches after which the sequence repeats; 0: batches wrap over the end of the records.
  int64_t testCycle(size_t i) const;
  bool testDue() const;
  int64_t recordsSkipped() const;   // by the data layers of all nets, because they could not be decoded
  double waitedForRecords() const;  // seconds, by the data layers of the train net
  std::string recordsRead() const;  // what the data layers of all nets read, as text; equal on all workers of a run
  // What determines the numbers from here on, as states carry it (solver/origin.h). The first call reads 64 records.
  caffe::StateOrigin origin() const;
  int64_t firstTestBatch(size_t i) const;  // the sequence number of this iteration's first test batch

  // "a.caffemodel, b.caffemodel.h5": into the train and all test nets; a file may be beside the solver's.
  void copyTrainedFrom(const std::string& weights);
  SnapshotFiles snapshotNames(const std::string& prefix) const;
  // <prefix>_iter_<n>.caffemodel and .solverstate, with .h5 by snapshot_format, each whole or not at all. The state
  // names its model by publishedPrefix when the files will be moved there.
  SnapshotFiles snapshot(const std::string& prefix, const std::string& publishedPrefix = "");
  std::string saveModel(const std::string& path) const;  // in snapshot_format; returns the name, with .h5 for HDF5
  // Iteration, history and weights; weights from `model` (a list) when given, else from the state's learned_net.
  void restore(const std::string& path, const std::string& model);
  // The same of a state that was read from `path`; where `model` is a copy, modelName is what the user knows it as. A
  // model of the name that the state gives is one that was saved with it (solver/snapshot_sums.h).
  void restore(const caffe::SolverState& state, const std::string& path, const std::string& model,
               const std::string& modelName = "");

 private:
  template <class T>
  void update(const T* gradient, int ranks);
  void moveStage();  // sets the lr_policy's stage for this iteration; only restore() changes it besides
  template <class T>
  double clipScale(const T* gradient, int ranks) const;
  void buildNets();
  void checkFinite() const;
  void checkSizes() const;
  caffe::SolverState state(const std::string& model) const;
  int64_t historyAt(int which, const net::Net::Learnable& p) const {
    return which * int64_t{net_->flatData().count()} + p.offset;
  }

  caffe::SolverParameter param_;
  SolverOptions options_;
  std::unique_ptr<net::Net> net_;
  std::optional<net::TrainingPlan> plan_;  // of net_, where no host program looks at it
  std::vector<std::unique_ptr<net::Net>> testNets_;
  std::map<size_t, net::ScoringPlan> testPlans_;  // of those that have computed
  Blob history_;
  std::atomic<int> iteration_{0};  // other threads may read it while a step is computed
  int currentStep_ = 0;
  std::deque<double> losses_;
  double smoothed_ = 0, lastRate_ = 0;
  std::string netDigest_;
  mutable std::string recordsDigest_;  // "" until somebody asks
};

}  // namespace crema::solver
