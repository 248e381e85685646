#include "support/conformance.h"

namespace crema::conformance {
namespace {

LAYER_CASES(Input) {
  Case& c = s.add("type: 'Input' top: 'x' input_param { shape { dim: 2 dim: 3 } }", {});
  c.smooth = false;
  c.naive = [](const auto&) { return Values(6, 0.0); };  // not filled: zeros
}

}  // namespace
}  // namespace crema::conformance
