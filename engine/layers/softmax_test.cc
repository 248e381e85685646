#include <cmath>

#include "support/conformance.h"

namespace crema::conformance {
namespace {

LAYER_CASES(Softmax) {
  s.add("type: 'Softmax'", {{3, 4, 2}}).naive = [](const auto& x) {
    Values y(24);
    for (size_t n = 0; n < 3; ++n)
      for (size_t i = 0; i < 2; ++i) {
        double total = 0;
        for (size_t c = 0; c < 4; ++c) total += std::exp(x[0][(n * 4 + c) * 2 + i]);
        for (size_t c = 0; c < 4; ++c) y[(n * 4 + c) * 2 + i] = std::exp(x[0][(n * 4 + c) * 2 + i]) / total;
      }
    return y;
  };
}

}  // namespace
}  // namespace crema::conformance
