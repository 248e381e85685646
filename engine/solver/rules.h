// The six solver types of Caffe: which update rule, how many histories, and the fields that rule out each other. The
// formulas stand in kernels/kernels.h.
#pragma once
#include "caffe.pb.h"
#include "kernels/kernels.h"

namespace crema::solver {

struct SolverRule {
  kernels::UpdateRule rule = kernels::UpdateRule::kSgd;
  int histories = 1;  // values kept for each parameter; Caffe's name and order: all first ones, then all second ones
};

SolverRule ruleOf(const caffe::SolverParameter& s);  // kInvalid: an unknown type
void checkRule(const caffe::SolverParameter& s);     // kInvalid: type and its fields
// All but the rate's lr_mult, the decay and the scale: those differ from parameter to parameter. rate: of lr_policy.
kernels::Update updateOf(const caffe::SolverParameter& s, double rate, int iteration);

}  // namespace crema::solver
