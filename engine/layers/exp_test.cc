#include <cmath>

#include "support/conformance.h"

namespace crema::conformance {
namespace {

LAYER_CASES(Exp) {
  s.add("type: 'Exp'", {{3, 5}}).naive = elementwise([](double x) { return std::exp(x); });
  s.add("type: 'Exp' exp_param { scale: -0.5 shift: 0.75 }", {{7}}).naive =
      elementwise([](double x) { return std::exp(0.75) * std::exp(-0.5 * x); });
  s.add("type: 'Exp' exp_param { base: 2 scale: 3 shift: -1 }", {{2, 2, 3}}).naive =
      elementwise([](double x) { return std::pow(2, 3 * x) / 2; });
  s.bad("type: 'Exp' exp_param { base: 0 }", {{1}}, "base must be strictly positive, or -1 for e, not 0");
  s.bad("type: 'Exp' exp_param { base: -2 }", {{1}}, "base must be strictly positive");
}

}  // namespace
}  // namespace crema::conformance
