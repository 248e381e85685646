#include "support/conformance.h"

namespace crema::conformance {
namespace {

LAYER_CASES(Parameter) {
  s.add("type: 'Parameter' parameter_param { shape { dim: 2 dim: 3 } }", {}).naive = [](const auto&) {
    return Values(6, 0.0);
  };
  s.add("type: 'Parameter' parameter_param { shape { dim: 3 } } blobs { shape { dim: 3 } data: 1 data: -2 data: 0.5 }",
        {})
      .naive = [](const auto&) {
    return Values{1, -2, 0.5};
  };
  s.bad("type: 'Parameter'", {}, "parameter_param.shape must be given");
}

}  // namespace
}  // namespace crema::conformance
