#include "support/conformance.h"

namespace crema::conformance {
namespace {

LAYER_CASES(Split) {
  s.add("type: 'Split' top: 'a' top: 'b' top: 'c'", {{2, 3}}).formula = [](const auto& x, const auto&) {
    return std::vector<Values>(3, x[0]);
  };
}

}  // namespace
}  // namespace crema::conformance
