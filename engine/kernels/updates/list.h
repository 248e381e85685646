// The update rules: what a solver's `type` may be. Each is a file named by that type, and a word in the list below;
// names, numbers of histories, checks, kernels and tests follow from the list.
//
// A rule is a struct with
//   kType, kHistories                 Caffe's name, and how many numbers it keeps for each weight (in snapshots: all
//                                     first ones, then all second ones)
//   check(s)                          invalid() where a field of the solver rules out another, or is out of range
//   Rule(s, iteration)                what it reads of the solver's fields, for the iteration (from 0) of this update
//   reference(rate, gradient, h...)   what is subtracted from a weight, in double; histories are rounded as kept
//   step(rate, gradient, h...)        the same in float, fused where it says fma: the bits of every model
// s is a caffe::SolverParameter, as a parameter of the template, since kernels know no messages. Rules stand here and
// not in engine/solver because vector code is compiled here only. reference and step are written twice on purpose: one
// is the other's witness.
//
// step is plain C++ on single floats; vector/updates.h has the loop that the compiler turns into vectors. Decided
// against: steps in the words of vector/all.h, which are other types for each instruction set, so that a rule's file
// would have to be included once for each.
#pragma once
#include <variant>

#include "kernels/updates/adadelta.h"
#include "kernels/updates/adagrad.h"
#include "kernels/updates/adam.h"
#include "kernels/updates/nesterov.h"
#include "kernels/updates/rmsprop.h"
#include "kernels/updates/sgd.h"

namespace crema::kernels {

template <class... Rule>
struct RuleList {
  using Any = std::variant<Rule...>;
  // body.operator()<Rule>() for each
  template <class Body>
  static void each(const Body& body) {
    (body.template operator()<Rule>(), ...);
  }
};

using UpdateRules =
    RuleList<AdaDelta, AdaGrad, Adam, Nesterov, RMSProp, SGD>;  // in the order in which messages name them

// One update of one parameter.
struct Update {
  UpdateRules::Any rule;
  Rate rate;
  double decay = 0, scale = 1;  // weight_decay times decay_mult; scale: of Gradient
  bool l1 = false;              // the decay is L1's
};

}  // namespace crema::kernels
