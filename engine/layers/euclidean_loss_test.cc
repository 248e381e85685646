#include "support/conformance.h"

namespace crema::conformance {
namespace {

LAYER_CASES(EuclideanLoss) {
  s.add("type: 'EuclideanLoss' loss_weight: 3", {{5, 2, 3}, {5, 6}}).naive = [](const auto& x) {
    double sum = 0;
    for (size_t i = 0; i < 30; ++i) sum += (x[0][i] - x[1][i]) * (x[0][i] - x[1][i]);
    return Values{sum / 10};
  };
  s.bad("type: 'EuclideanLoss'", {{4, 3}, {3, 4}}, "Inputs must have the same dimension: bottom 0 is 4x3");
  s.bad("type: 'EuclideanLoss'", {{4, 3}, {4, 2}}, "give the layer below the num_output of the other");
}

}  // namespace
}  // namespace crema::conformance
