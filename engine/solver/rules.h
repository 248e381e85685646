// The types of solvers as fields of a caffe::SolverParameter name them. The list of update rules, and what each reads
// and computes: kernels/updates/list.h.
#pragma once
#include "caffe.pb.h"
#include "kernels/updates/list.h"

namespace crema::solver {

struct SolverRule {
  const char* type;
  int histories;  // values kept for each parameter; Caffe's order: all first ones, then all second ones
  void (*check)(const caffe::SolverParameter&);
  kernels::UpdateRules::Any (*at)(const caffe::SolverParameter&, int iteration);
};

const SolverRule& ruleOf(const caffe::SolverParameter& s);  // kInvalid: an unknown type
void checkRule(const caffe::SolverParameter& s);            // kInvalid: type and its fields
// All fields but those that differ between parameters: lr_mult, decay and scale. rate: from lr_policy.
kernels::Update updateOf(const caffe::SolverParameter& s, double rate, int iteration);

}  // namespace crema::solver
