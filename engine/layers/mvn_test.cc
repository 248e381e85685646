#include <cmath>

#include "support/conformance.h"

namespace crema::conformance {
namespace {

LAYER_CASES(MVN) {
  const auto rows = [](int parts, bool scaled, double eps) {
    return [=](const auto& x) {
      const size_t n = x[0].size() / static_cast<size_t>(parts);
      Values y;
      for (size_t r = 0; r < static_cast<size_t>(parts); ++r) {
        double sum = 0, squares = 0;
        for (size_t i = 0; i < n; ++i) sum += x[0][r * n + i];
        for (size_t i = 0; i < n; ++i) squares += std::pow(x[0][r * n + i] - sum / static_cast<double>(n), 2);
        for (size_t i = 0; i < n; ++i) {
          const double z = x[0][r * n + i] - sum / static_cast<double>(n);
          y.push_back(scaled ? z / (std::sqrt(squares / static_cast<double>(n)) + eps) : z);
        }
      }
      return y;
    };
  };
  s.add("type: 'MVN'", {{2, 3, 4, 5}}).naive = rows(6, true, 1e-9);
  s.add("type: 'MVN' mvn_param { across_channels: true }", {{2, 3, 2, 5}}).naive = rows(2, true, 1e-9);
  s.add("type: 'MVN' mvn_param { normalize_variance: false }", {{2, 3, 3, 2}}).naive = rows(6, false, 0);
  s.add("type: 'MVN' mvn_param { normalize_variance: false across_channels: true }", {{2, 7}}).naive =
      rows(2, false, 0);
  s.add("type: 'MVN' mvn_param { eps: 0.5 }", {{2, 1, 9}}).naive =
      rows(2, true, 0.5);                                               // the gradient is the derivative even so
  Case& flat = s.add("type: 'MVN' mvn_param { eps: 0 }", {{2, 2, 4}});  // no deviation: zeros, no NaN
  flat.input = [](size_t, int k, double) { return static_cast<double>(k / 4); };
  flat.naive = [](const auto& x) { return Values(x[0].size(), 0.0); }, flat.smooth = false;
  s.bad("type: 'MVN' mvn_param { eps: -1 }", {{2, 3}}, "eps must not be negative");
}

}  // namespace
}  // namespace crema::conformance
