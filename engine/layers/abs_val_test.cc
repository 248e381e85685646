#include <cmath>

#include "support/conformance.h"

namespace crema::conformance {
namespace {

LAYER_CASES(AbsVal) {
  Case& c = s.add("type: 'AbsVal'", {{3, 7, 2}});
  c.naive = elementwise([](double x) { return x < 0 ? -x : x; });
  // 20,000 elements: more pieces than one. At 0 the gradient is 0, as the differences say on both sides.
  Case& zeros = s.add("type: 'AbsVal'", {{40, 500}});
  zeros.input = [](size_t, int k, double u) { return k % 3 ? 2 * u - 1 : 0; };
  zeros.naive = c.naive, zeros.smooth = false;
  Case& flat = s.add("type: 'AbsVal'", {{5, 3}});
  flat.input = zeros.input, flat.naive = c.naive;
  s.bad("type: 'AbsVal'", {{1}, {1}}, "takes 1 bottom blob(s), here are 2");
}

}  // namespace
}  // namespace crema::conformance
