#include <cmath>

#include "support/conformance.h"

namespace crema::conformance {
namespace {

LAYER_CASES(Log) {
  const auto positive = [](size_t, int, double u) { return 0.1 + 3 * u; };
  Case& natural = s.add("type: 'Log'", {{3, 5}});
  natural.input = positive, natural.naive = elementwise([](double x) { return std::log(x); });
  Case& two = s.add("type: 'Log' log_param { base: 2 scale: 3 shift: 0.5 }", {{2, 2, 3}});
  two.input = positive, two.naive = elementwise([](double x) { return std::log2(0.5 + 3 * x); });
  Case& less = s.add("type: 'Log' log_param { base: 0.5 scale: -1 shift: 4 }", {{6}});
  less.input = positive, less.naive = elementwise([](double x) { return -std::log2(4 - x); });
  s.bad("type: 'Log' log_param { base: 1 }", {{1}}, "strictly positive and not 1");
  s.bad("type: 'Log' log_param { base: -3 }", {{1}}, "or -1 for e, not -3");
}

}  // namespace
}  // namespace crema::conformance
