#include "support/conformance.h"

namespace crema::conformance {
namespace {

LAYER_CASES(Silence) {
  s.add("type: 'Silence'", {{2, 3}, {4}}).formula = [](const auto&, const auto&) { return std::vector<Values>{}; };
}

}  // namespace
}  // namespace crema::conformance
