#include "support/conformance.h"

namespace crema::conformance {
namespace {

LAYER_CASES(Concat) {
  s.add("type: 'Concat' concat_param { axis: 2 }", {{2, 3, 2}, {2, 3, 1}, {2, 3, 4}});
  s.add("type: 'Concat'", {{2, 3, 2}}).naive = [](const auto& x) { return x[0]; };
  s.bad("type: 'Concat'", {{2, 3}, {3, 3}}, "all axes but axis 1 must agree");
}

}  // namespace
}  // namespace crema::conformance
