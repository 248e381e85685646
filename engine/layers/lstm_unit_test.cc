#include <cmath>

#include "support/conformance.h"

namespace crema::conformance {
namespace {

LAYER_CASES(LSTMUnit) {
  Case& c = s.add("type: 'LSTMUnit' top: 'c' top: 'h'", {{1, 3, 4}, {1, 3, 16}, {1, 3}});
  c.otherBatch = false;  // axis 0 is always 1
  c.input = [](size_t bottom, int k, double u) { return bottom == 2 ? (k == 1 ? 0 : k == 2 ? 0.5 : 1) : 4 * u - 2; };
  c.formula = [](const auto& x, const auto&) {
    std::vector<Values> tops(2);
    const auto squash = [](double v) { return 1 / (1 + std::exp(-v)); };
    for (size_t n = 0; n < 3; ++n)
      for (size_t k = 0; k < 4; ++k) {
        const double* a = &x[1][n * 16 + k];
        const double cell = x[2][n] * squash(a[4]) * x[0][n * 4 + k] + squash(a[0]) * std::tanh(a[12]);
        tops[0].push_back(cell), tops[1].push_back(squash(a[8]) * std::tanh(cell));
      }
    return tops;
  };
  const std::string unit = "type: 'LSTMUnit' top: 'c' top: 'h'";
  s.bad(unit, {{3, 4}, {1, 3, 16}, {1, 3}}, "must be 1 x streams x hidden, it is 3x4");
  s.bad(unit, {{1, 3, 4}, {1, 3, 12}, {1, 3}}, "must be 1x3x16, four times bottom 0");
  s.bad(unit, {{1, 3, 4}, {1, 3, 16}, {3, 1}}, "bottom 2 (cont) must be 1x3");
}

}  // namespace
}  // namespace crema::conformance
