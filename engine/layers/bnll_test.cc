#include <cmath>

#include "support/conformance.h"

namespace crema::conformance {
namespace {

LAYER_CASES(BNLL) {
  for (const double reach : {1.0, 40.0, 300.0}) {  // exp(300) is more than a float holds
    Case& c = s.add("type: 'BNLL'", {{4, 9}});
    c.input = [reach](size_t, int, double u) { return reach * (2 * u - 1); };
    c.naive = elementwise([](double x) { return x > 0 ? x + std::log(1 + std::exp(-x)) : std::log(1 + std::exp(x)); });
  }
}

}  // namespace
}  // namespace crema::conformance
