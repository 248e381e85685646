#include <cmath>

#include "support/conformance.h"

namespace crema::conformance {
namespace {

LAYER_CASES(ELU) {
  s.add("type: 'ELU'", {{3, 5}}).naive =
      elementwise([](double x) { return std::max(x, 0.0) + (std::exp(std::min(x, 0.0)) - 1); });
  s.add("type: 'ELU' elu_param { alpha: 0.25 }", {{2, 3, 3}}).naive =
      elementwise([](double x) { return x > 0 ? x : 0.25 * (std::exp(x) - 1); });
}

}  // namespace
}  // namespace crema::conformance
