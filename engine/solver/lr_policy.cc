#include "solver/lr_policy.h"

#include <cmath>
#include <set>
#include <string>

#include "base/error.h"
#include "base/log.h"

namespace crema::solver {

void checkPolicy(const caffe::SolverParameter& p) {
  static const std::set<std::string> known = {"fixed", "step", "exp", "inv", "multistep", "poly", "sigmoid"};
  if (p.lr_policy().empty())
    invalid("lr_policy is not set; set it to exp, fixed, inv, multistep, poly, sigmoid or step, and base_lr");
  if (!known.count(p.lr_policy()))
    invalid("Unknown learning rate policy: '{}'; set lr_policy to exp, fixed, inv, multistep, poly, sigmoid or step",
            p.lr_policy());
  const bool stepped = p.lr_policy() == "step" || p.lr_policy() == "sigmoid";
  if (stepped && p.stepsize() <= 0) invalid("lr_policy \"{}\" needs stepsize > 0, not {}", p.lr_policy(), p.stepsize());
  if ((p.lr_policy() == "step" || p.lr_policy() == "exp" || p.lr_policy() == "inv" || p.lr_policy() == "multistep") &&
      p.gamma() < 0)
    invalid("lr_policy \"{}\" needs gamma >= 0, not {}", p.lr_policy(), p.gamma());
  if (p.lr_policy() == "poly" && p.max_iter() <= 0) invalid("lr_policy \"poly\" needs max_iter > 0");
}

double learningRate(const caffe::SolverParameter& p, int i, int* currentStep) {
  const std::string& policy = p.lr_policy();
  const double b = p.base_lr(), g = p.gamma();
  if (policy == "fixed") return b;
  if (policy == "step") {
    *currentStep = i / p.stepsize();
    return b * std::pow(g, *currentStep);
  }
  if (policy == "exp") return b * std::pow(g, i);
  if (policy == "inv") return b * std::pow(1 + g * i, -static_cast<double>(p.power()));
  if (policy == "multistep") {
    if (*currentStep < p.stepvalue_size() && i >= p.stepvalue(*currentStep)) {
      ++*currentStep;
      LOG_INFO("MultiStep Status: Iteration {}, step = {}", i, *currentStep);
    }
    return b * std::pow(g, *currentStep);
  }
  if (policy == "poly") return b * std::pow(1 - static_cast<double>(i) / p.max_iter(), p.power());
  if (policy == "sigmoid") return b / (1 + std::exp(-g * (static_cast<double>(i) - p.stepsize())));
  invalid("Unknown learning rate policy: {}", policy);
}

}  // namespace crema::solver
