// One step, for the trainer and for jcaffe's net: a pass of each rank of this process, then the sum over all ranks, in
// the order of the tree, of gradients, losses and requests.
#pragma once
#include <functional>
#include <optional>
#include <vector>

#include "collective/background_sum.h"
#include "collective/mesh.h"
#include "collective/tree_sum.h"
#include "solver/solver.h"
#include "train/packed_gradient.h"
#include "train/request.h"

namespace crema::train {

class Step {
 public:
  struct Sum {
    const float* gradient;  // over all ranks, in the net's layout; valid until the net's diffs change
    double loss;            // mean over ranks
    Request requests;       // of any worker
  };

  // exchange: nullptr where this process holds all ranks. Both must outlive the step. Float nets only.
  Step(solver::Solver& solver, collective::Exchange* exchange, collective::RankRange mine, int ranks);
  // From now on the solver leaves gradients of several ranks to the update where that is worth it (train/left_gradients.h):
  // they are not in the sum. threads: the fewest of any worker's; all name the same.
  void leaveGradients(int threads);

  // pass(rank, done) leaves the rank's gradient in the net's flat diff and gives its loss; it may call done(from) as soon as
  // the gradients of learnt parameters are complete from that element on; those of my last rank are then summed over workers
  // while it goes on. It is called for my ranks in ascending order. request() is polled after each; what the last
  // poll gives is this process's one vote. Memory: one gradient for each sum that waits in the tree, at most
  // log2 of my ranks.
  using Done = std::function<void(int64_t from)>;
  enum class Passes { kBothWays, kForward };  // kForward: there are statistics and losses alone
  Sum run(const std::function<double(int rank, const Done& done)>& pass, const std::function<Request()>& request,
          Passes passes = Passes::kBothWays);

  // All-gather: each value is set by one worker and zero on all others; afterwards all workers have all of them, with
  // the same bits for any number of workers.
  void gather(std::vector<float>& values, const collective::Tag& tag);
  // Seconds that run() has waited for sums, and before, until all others had begun theirs.
  double exchanged() const { return exchanged_; }
  double waitedForOthers() const { return waitedForOthers_; }

 private:
  struct Part {
    int64_t complete;  // when done() names an element of the flat diff up to this one
    int64_t from, to;  // in gradient_
    int layer = -1;    // whose factors are shared instead
  };
  void cutParts();
  void take(int leaf, int64_t from, int64_t to);  // of gradient_; the last one's go into the tree
  void takeFactors(int leaf);
  void shareFactors(int layer, const collective::Tag& tag);  // of my ranks, the last one's taken before
  void addParts(int64_t complete, size_t before);            // those from this element on, of the first `before` parts
  void finishSums();

  solver::Solver& solver_;
  collective::Exchange* exchange_;
  int ranks_, firstRank_, count_;  // of all workers; of this process
  double exchanged_ = 0, waitedForOthers_ = 0;
  std::vector<net::TrainingPlan::Deferrable> left_;
  PackedGradient gradient_;
  Passes passes_ = Passes::kBothWays;  // in this step
  // In the order in which a backward pass completes them; the statistics and spare floats are the last.
  std::vector<Part> parts_;
  size_t added_ = 0;  // in this step
  std::optional<collective::BackgroundSum> background_;
  collective::TreeSum mine_;  // its roots: the whole subtrees of my ranks
};

}  // namespace crema::train
