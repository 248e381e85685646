#include "solver/rules.h"

#include <string>
#include <vector>

#include "base/error.h"

namespace crema::solver {
namespace {

const std::vector<SolverRule>& rules() {
  static const std::vector<SolverRule> all = [] {
    std::vector<SolverRule> list;
    kernels::UpdateRules::each([&]<class Rule>() {
      list.push_back({.type = Rule::kType,
                      .histories = Rule::kHistories,
                      .check = &Rule::template check<caffe::SolverParameter>,
                      .at = [](const caffe::SolverParameter& s, int iteration) -> kernels::UpdateRules::Any {
                        return Rule(s, iteration);
                      }});
    });
    return list;
  }();
  return all;
}

}  // namespace

const SolverRule& ruleOf(const caffe::SolverParameter& s) {
  std::string known;
  for (const SolverRule& rule : rules()) {
    if (s.type() == rule.type) return rule;
    known += (known.empty() ? "" : ", ") + std::string(rule.type);
  }
  invalid("Unknown solver type: {} (known types: {})", s.type(), known);
}

void checkRule(const caffe::SolverParameter& s) { ruleOf(s).check(s); }

kernels::Update updateOf(const caffe::SolverParameter& s, double rate, int iteration) {
  return {.rule = ruleOf(s).at(s, iteration), .rate = {.policy = rate}, .l1 = s.regularization_type() == "L1"};
}

}  // namespace crema::solver
