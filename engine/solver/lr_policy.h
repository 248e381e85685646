// Learning rates. i: the iteration, b: base_lr, g: gamma, s: stepsize, p: power.
//   fixed b · step b g^floor(i/s) · exp b g^i · inv b (1 + g i)^-p · multistep b g^k, k = stepvalues passed
//   poly b (1 - i/max_iter)^p · sigmoid b / (1 + e^(-g (i - s)))
#pragma once
#include "caffe.pb.h"

namespace crema::solver {

void checkPolicy(const caffe::SolverParameter& param);  // invalid() names the field: before the first step, not at it
// currentStep is multistep's k: it moves by at most one per call, is stored in snapshots, and only here changed.
double learningRate(const caffe::SolverParameter& param, int iteration, int* currentStep);

}  // namespace crema::solver
