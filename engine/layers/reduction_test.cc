#include <cmath>

#include "support/conformance.h"

namespace crema::conformance {
namespace {

LAYER_CASES(Reduction) {
  const auto rows = [](int parts, double (*term)(double), double factor) {
    return [=](const auto& x) {
      Values y(static_cast<size_t>(parts), 0.0);
      for (size_t i = 0; i < x[0].size(); ++i) y[i * y.size() / x[0].size()] += factor * term(x[0][i]);
      return y;
    };
  };
  const auto same = [](double x) { return x; };
  const auto size = [](double x) { return std::fabs(x); };
  const auto square = [](double x) { return x * x; };
  s.add("type: 'Reduction'", {{3, 5, 2}}).naive = rows(1, same, 1);
  s.add("type: 'Reduction' reduction_param { axis: 1 coeff: -2 }", {{3, 5, 2}}).naive = rows(3, same, -2);
  s.add("type: 'Reduction' reduction_param { operation: ASUM axis: -1 coeff: 0.5 }", {{3, 5, 19}}).naive =
      rows(15, size, 0.5);
  s.add("type: 'Reduction' reduction_param { operation: SUMSQ axis: 2 }", {{3, 5, 2, 3}}).naive = rows(15, square, 1);
  s.add("type: 'Reduction' reduction_param { operation: MEAN axis: 1 coeff: 3 }", {{3, 5, 2}}).naive =
      rows(3, same, 0.3);
  s.add("type: 'Reduction' reduction_param { operation: SUMSQ coeff: 0.5 } loss_weight: 1", {{37}}).naive =
      rows(1, square, 0.5);
  s.bad("type: 'Reduction' reduction_param { axis: 3 }", {{3, 5, 2}}, "axis");
}

}  // namespace
}  // namespace crema::conformance
