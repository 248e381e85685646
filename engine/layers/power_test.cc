#include <cmath>

#include "support/conformance.h"

namespace crema::conformance {
namespace {

LAYER_CASES(Power) {
  s.add("type: 'Power'", {{3, 5}}).naive = [](const auto& x) { return x[0]; };
  s.add("type: 'Power' power_param { scale: -2 shift: 0.5 }", {{7}}).naive =
      elementwise([](double x) { return 0.5 - 2 * x; });
  s.add("type: 'Power' power_param { power: 2 scale: 0.5 shift: -1 }", {{7}}).naive =
      elementwise([](double x) { return (0.5 * x - 1) * (0.5 * x - 1); });
  s.add("type: 'Power' power_param { power: -1.5 shift: 2.5 }", {{2, 2, 3}}).naive =
      elementwise([](double x) { return 1 / std::sqrt((x + 2.5) * (x + 2.5) * (x + 2.5)); });
  s.add("type: 'Power' power_param { power: 0 scale: 3 }", {{4}}).naive = elementwise([](double) { return 1; });
  s.add("type: 'Power' power_param { power: 3 scale: 0 shift: 2 }", {{4}}).naive =
      elementwise([](double) { return 8; });
  Case& zero = s.add("type: 'Power' power_param { power: 3 }", {{3}});  // Caffe divides by zero in the backward pass
  zero.input = [](size_t, int, double) { return 0.0; }, zero.naive = elementwise([](double) { return 0; });
}

}  // namespace
}  // namespace crema::conformance
