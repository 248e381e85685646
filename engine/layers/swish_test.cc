#include <cmath>

#include "support/conformance.h"

namespace crema::conformance {
namespace {

LAYER_CASES(Swish) {
  s.add("type: 'Swish'", {{4, 9}}).naive = elementwise([](double x) { return x * (0.5 * std::tanh(0.5 * x) + 0.5); });
  s.add("type: 'Swish' swish_param { beta: -2.5 }", {{2, 3, 2}}).naive =
      elementwise([](double x) { return x * (0.5 - 0.5 * std::tanh(1.25 * x)); });
}

}  // namespace
}  // namespace crema::conformance
