// Learning rates. i: the iteration, b: base_lr, g: gamma, s: stepsize, p: power.
//   fixed b · step b g^k, k = floor(i/s) · exp b g^i · inv b (1 + g i)^-p · multistep b g^k, k = stepvalues passed
//   poly b (1 - i/max_iter)^p · sigmoid b / (1 + e^(-g (i - s)))
// k is the stage of step and multistep, current_step in snapshots. These functions have no state and log nothing: the
// solver keeps the stage and advances it once per update.
#pragma once
#include "caffe.pb.h"

namespace crema::solver {

void checkPolicy(const caffe::SolverParameter& param);  // called before the first step; invalid() names the field
// The stage of iteration `iteration`, given the stage of the one before. That of multistep grows by at most one, so
// several stepvalues that are due take an iteration each. Policies without stages keep it.
int stageAt(const caffe::SolverParameter& param, int iteration, int stage);
double learningRate(const caffe::SolverParameter& param, int iteration, int stage);  // stage: from stageAt()

}  // namespace crema::solver
