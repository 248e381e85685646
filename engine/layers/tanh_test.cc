#include <cmath>

#include "support/conformance.h"

namespace crema::conformance {
namespace {

LAYER_CASES(TanH) {
  for (const double reach : {1.0, 50.0}) {
    Case& c = s.add("type: 'TanH' tanh_param { engine: CUDNN }", {{4, 9}});
    c.input = [reach](size_t, int, double u) { return reach * (2 * u - 1); };
    c.naive = elementwise([](double x) { return 1 - 2 / (std::exp(2 * x) + 1); });
  }
}

}  // namespace
}  // namespace crema::conformance
