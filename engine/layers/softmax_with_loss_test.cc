#include <cmath>

#include "support/conformance.h"

namespace crema::conformance {
namespace {

LAYER_CASES(SoftmaxWithLoss) {
  Case& plain = s.add("type: 'SoftmaxWithLoss'", {{5, 4}, {5}});
  plain.classes = 4;
  plain.naive = [](const auto& x) {
    double total = 0;
    for (size_t n = 0; n < 5; ++n) {
      double z = 0;
      for (size_t c = 0; c < 4; ++c) z += std::exp(x[0][n * 4 + c]);
      total -= x[0][n * 4 + static_cast<size_t>(x[1][n])] - std::log(z);
    }
    return Values{total / 5};
  };
  s.add("type: 'SoftmaxWithLoss' loss_param { ignore_label: 1 normalization: FULL }", {{3, 4, 2}, {3, 1, 2}}).classes =
      4;
  s.bad("type: 'SoftmaxWithLoss'", {{5, 4}, {4}}, "4 labels for 5 predictions");
}

}  // namespace
}  // namespace crema::conformance
