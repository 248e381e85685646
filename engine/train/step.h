// One step, for the trainer and for jcaffe's net: a pass of each rank of this process, then the sum over all ranks, in
// the order of the tree, of gradients, losses and requests.
#pragma once
#include <functional>
#include <vector>

#include "collective/mesh.h"
#include "collective/tree_sum.h"
#include "solver/solver.h"
#include "train/request.h"

namespace crema::train {

class Step {
 public:
  struct Sum {
    const float* gradient;  // over all ranks, in the net's layout; valid until the net's diffs change
    double loss;            // mean over ranks
    Request requests;       // of any rank
  };

  // exchange: nullptr where this process holds all ranks. Both must outlive the step. Float nets only.
  Step(solver::Solver& solver, collective::Exchange* exchange, collective::RankRange mine, int ranks);

  // pass(rank) leaves the rank's gradient in the net's flat diff and gives its loss; it is called for my ranks in
  // ascending order. request() is polled after each. Memory: one gradient for each sum that waits in the tree, at most
  // log2 of my ranks.
  Sum run(const std::function<double(int rank)>& pass, const std::function<Request()>& request);

  // All-gather: each value is set by one worker and zero on all others; afterwards all workers have all of them, with
  // the same bits for any number of workers.
  void gather(std::vector<float>& values, const collective::Tag& tag);
  double exchanged() const { return exchanged_; }  // seconds that the sums of run() took, with waits for other workers

 private:
  solver::Solver& solver_;
  collective::Exchange* exchange_;
  int ranks_, firstRank_;
  double exchanged_ = 0;
  collective::TreeSum mine_;  // its roots: the whole subtrees of my ranks
};

}  // namespace crema::train
