#include "support/conformance.h"

namespace crema::conformance {
namespace {

LAYER_CASES(ReLU) {
  s.add("type: 'ReLU' relu_param { negative_slope: 0.25 }", {{4, 9}}).naive = [](const auto& x) {
    Values y;
    for (double v : x[0]) y.push_back(v > 0 ? v : 0.25 * v);
    return y;
  };
  s.add("type: 'ReLU' relu_param { negative_slope: -0.5 }", {{4, 9}}).naive = [](const auto& x) {
    Values y;
    for (double v : x[0]) y.push_back(v > 0 ? v : -0.5 * v);
    return y;
  };
  s.bad("type: 'ReLU'", {{1}, {1}}, "takes 1 bottom blob(s), here are 2");
}

}  // namespace
}  // namespace crema::conformance
