#include "solver/lr_policy.h"

#include <cmath>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/text.h"

namespace crema::solver {
namespace {

using Parameter = caffe::SolverParameter;

void checkNothing(const Parameter&) {}
void checkStepsize(const Parameter& p) {
  if (p.stepsize() <= 0) invalid("lr_policy \"{}\" needs stepsize > 0, not {}", p.lr_policy(), p.stepsize());
}
void checkGamma(const Parameter& p) {
  if (p.gamma() < 0) invalid("lr_policy \"{}\" needs gamma >= 0, not {}", p.lr_policy(), p.gamma());
}
void checkStep(const Parameter& p) {
  checkStepsize(p);
  checkGamma(p);
}
void checkMaxIter(const Parameter& p) {
  if (p.max_iter() <= 0) invalid("lr_policy \"poly\" needs max_iter > 0");
}

int sameStage(const Parameter&, int, int stage) { return stage; }
int stageOfStep(const Parameter& p, int i, int) { return i / p.stepsize(); }
int stageOfMultistep(const Parameter& p, int i, int stage) {
  return stage < p.stepvalue_size() && i >= p.stepvalue(stage) ? stage + 1 : stage;
}

double fixed(const Parameter& p, int, int) { return p.base_lr(); }
double byStage(const Parameter& p, int, int stage) { return p.base_lr() * std::pow(double{p.gamma()}, stage); }
double exponential(const Parameter& p, int i, int) { return p.base_lr() * std::pow(double{p.gamma()}, i); }
double inverse(const Parameter& p, int i, int) {
  return p.base_lr() * std::pow(1 + double{p.gamma()} * i, -double{p.power()});
}
double poly(const Parameter& p, int i, int) {
  return p.base_lr() * std::pow(1 - static_cast<double>(i) / p.max_iter(), double{p.power()});
}
double sigmoid(const Parameter& p, int i, int) {
  return p.base_lr() / (1 + std::exp(-double{p.gamma()} * (static_cast<double>(i) - p.stepsize())));
}

struct Policy {
  const char* name;
  void (*check)(const Parameter&);
  int (*stage)(const Parameter&, int iteration, int stageBefore);
  double (*rate)(const Parameter&, int iteration, int stage);
};

// All policies, one line each; the choice by name and the names in messages come from this table.
constexpr Policy kPolicies[] = {
    {.name = "exp", .check = checkGamma, .stage = sameStage, .rate = exponential},
    {.name = "fixed", .check = checkNothing, .stage = sameStage, .rate = fixed},
    {.name = "inv", .check = checkGamma, .stage = sameStage, .rate = inverse},
    {.name = "multistep", .check = checkGamma, .stage = stageOfMultistep, .rate = byStage},
    {.name = "poly", .check = checkMaxIter, .stage = sameStage, .rate = poly},
    {.name = "sigmoid", .check = checkStepsize, .stage = sameStage, .rate = sigmoid},
    {.name = "step", .check = checkStep, .stage = stageOfStep, .rate = byStage},
};

std::string names() {
  std::vector<std::string> all;
  for (const Policy& policy : kPolicies) all.emplace_back(policy.name);
  return alternatives(all);
}

const Policy& policyOf(const Parameter& p) {
  for (const Policy& policy : kPolicies)
    if (p.lr_policy() == policy.name) return policy;
  if (p.lr_policy().empty()) invalid("lr_policy is not set; set it to {}, and base_lr", names());
  invalid("Unknown learning rate policy: '{}'; set lr_policy to {}", p.lr_policy(), names());
}

}  // namespace

void checkPolicy(const Parameter& p) { policyOf(p).check(p); }
int stageAt(const Parameter& p, int iteration, int stage) { return policyOf(p).stage(p, iteration, stage); }
double learningRate(const Parameter& p, int iteration, int stage) { return policyOf(p).rate(p, iteration, stage); }

}  // namespace crema::solver
