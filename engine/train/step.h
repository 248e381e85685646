// The heart of a step, for whoever trains: one pass of each rank of this process, summed over all ranks in the order of
// the tree, with each rank's loss and requests.
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
  // ascending order. request() is asked behind each. Memory: a gradient for each rank that waits to be added, log2 of
  // my ranks at most.
  Sum run(const std::function<double(int rank)>& pass, const std::function<Request()>& request);

  // Values of which one worker has each and the others have zeros: all get all, the same bits for any number of
  // workers.
  void gather(std::vector<float>& values, const collective::Tag& tag);

 private:
  solver::Solver& solver_;
  collective::Exchange* exchange_;
  int ranks_, firstRank_;
  size_t pieces_;  // whole subtrees of my ranks
  collective::TreeSum mine_;
};

}  // namespace crema::train
