// Learning rates. i: the iteration, b: base_lr, g: gamma, s: stepsize, p: power.
//   fixed b · step b g^k, k = floor(i/s) · exp b g^i · inv b (1 + g i)^-p · multistep b g^k, k = stepvalues passed
//   poly b (1 - i/max_iter)^p · sigmoid b / (1 + e^(-g (i - s)))
// k is the stage of step and multistep, current_step in snapshots. Nothing here changes or logs anything: the solver
// keeps the stage and moves it, once in each update.
#pragma once
#include "caffe.pb.h"

namespace crema::solver {

void checkPolicy(const caffe::SolverParameter& param);  // invalid() names the field: before the first step, not at it
// The stage in which iteration `iteration` is, after `stage` in the one before it. multistep's moves by at most one:
// stepvalues that are due together take an iteration each. Of policies without stages it stays.
int stageAt(const caffe::SolverParameter& param, int iteration, int stage);
double learningRate(const caffe::SolverParameter& param, int iteration, int stage);  // stage: of stageAt()

}  // namespace crema::solver
