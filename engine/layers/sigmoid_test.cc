#include <cmath>

#include "support/conformance.h"

namespace crema::conformance {
namespace {

LAYER_CASES(Sigmoid) {
  for (const double reach : {1.0, 200.0}) {
    Case& c = s.add("type: 'Sigmoid' sigmoid_param { engine: CAFFE }", {{4, 9}});
    c.input = [reach](size_t, int, double u) { return reach * (2 * u - 1); };
    c.naive = elementwise([](double x) { return 0.5 * std::tanh(0.5 * x) + 0.5; });
  }
}

}  // namespace
}  // namespace crema::conformance
