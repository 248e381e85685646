#include "solver/rules.h"

#include <cmath>
#include <map>

#include "base/error.h"

namespace crema::solver {

using kernels::UpdateRule;

namespace {

const std::map<std::string, SolverRule>& rules() {
  static const std::map<std::string, SolverRule> all = {
      {"AdaDelta", {UpdateRule::kAdaDelta, 2}}, {"AdaGrad", {UpdateRule::kAdaGrad, 1}},
      {"Adam", {UpdateRule::kAdam, 2}},         {"Nesterov", {UpdateRule::kNesterov, 1}},
      {"RMSProp", {UpdateRule::kRmsProp, 1}},   {"SGD", {UpdateRule::kSgd, 1}}};
  return all;
}

void checkShare(const char* field, float value) {
  if (!(value >= 0 && value < 1)) invalid("{} should lie between 0 and 1: 0 <= {} < 1, not {}", field, field, value);
}

}  // namespace

SolverRule ruleOf(const caffe::SolverParameter& s) {
  const auto found = rules().find(s.type());
  if (found != rules().end()) return found->second;
  std::string known;
  for (const auto& [name, rule] : rules()) known += (known.empty() ? "" : ", ") + name;
  invalid("Unknown solver type: {} (known types: {})", s.type(), known);
}

void checkRule(const caffe::SolverParameter& s) {
  const UpdateRule rule = ruleOf(s).rule;
  const bool averages = rule == UpdateRule::kAdam || rule == UpdateRule::kAdaDelta;
  if (rule == UpdateRule::kAdam || (averages && s.momentum() != 1)) checkShare("momentum", s.momentum());
  if (!std::isfinite(s.momentum())) invalid("momentum should be a number, not {}", s.momentum());
  if ((rule == UpdateRule::kAdaGrad || rule == UpdateRule::kRmsProp) && s.momentum() != 0)
    invalid("Momentum cannot be used with {}. Remove momentum ({}) or take another type", s.type(), s.momentum());
  if (rule == UpdateRule::kRmsProp) checkShare("rms_decay", s.rms_decay());
  if (rule == UpdateRule::kAdam) checkShare("momentum2", s.momentum2());
  if (rule != UpdateRule::kSgd && rule != UpdateRule::kNesterov && !(s.delta() >= 0))
    invalid("delta keeps the division finite and must not be negative, not {}", s.delta());
}

kernels::Update updateOf(const caffe::SolverParameter& s, double rate, int iteration) {
  kernels::Update u;
  u.rule = ruleOf(s).rule;
  u.rate = rate;
  u.momentum = s.momentum();
  u.delta = s.delta();
  u.l1 = s.regularization_type() == "L1";
  u.decayOfSquares = u.rule == UpdateRule::kAdam ? s.momentum2() : s.rms_decay();
  if (u.rule == UpdateRule::kAdam) {
    const double t = iteration + 1.0;  // the means start at 0: Kingma & Ba, section 3
    u.rate *= std::sqrt(1 - std::pow(u.decayOfSquares, t)) / (1 - std::pow(u.momentum, t));
  }
  return u;
}

}  // namespace crema::solver
