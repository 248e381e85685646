#include "support/conformance.h"

namespace crema::conformance {
namespace {

LAYER_CASES(DummyData) {
  Case& c = s.add(
      "type: 'DummyData' top: 'x' dummy_data_param { shape { dim: 2 dim: 3 } data_filler { type: 'constant' value: 4 } "
      "}",
      {});
  c.smooth = false;
  c.naive = [](const auto&) { return Values(6, 4.0); };
}

}  // namespace
}  // namespace crema::conformance
