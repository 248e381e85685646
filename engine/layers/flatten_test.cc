#include "support/conformance.h"

namespace crema::conformance {
namespace {

LAYER_CASES(Flatten) {
  s.add("type: 'Flatten' flatten_param { axis: 1 end_axis: 2 }", {{2, 3, 4, 2}}).naive = [](const auto& x) {
    return x[0];
  };
}

}  // namespace
}  // namespace crema::conformance
