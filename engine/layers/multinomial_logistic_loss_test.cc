#include <gtest/gtest.h>

#include <cmath>

#include "support/conformance.h"

namespace crema::conformance {
namespace {

LAYER_CASES(MultinomialLogisticLoss) {
  Case& c = s.add("type: 'MultinomialLogisticLoss'", {{6, 4}, {6, 1}});
  c.input = [](size_t bottom, int, double u) { return bottom ? std::floor(u * 4) : 0.05 + u; };
  c.naive = [](const auto& x) {
    double sum = 0;
    for (size_t n = 0; n < 6; ++n) sum -= std::log(x[0][n * 4 + static_cast<size_t>(x[1][n])]);
    return Values{sum / 6};
  };
  s.bad("type: 'MultinomialLogisticLoss'", {{4, 3}, {4, 3}}, "12 labels for 4 predictions");
}

TEST(MultinomialLogisticLoss, ProbabilityZeroIsBounded) {
  Case c;
  c.description = "type: 'MultinomialLogisticLoss'", c.bottoms = {{1, 2}, {1}};
  c.input = [](size_t, int, double) { return 0.0; };
  Bench b(c, DType::kFloat64);
  b.forward(), b.seedTopDiffs(), b.backward();
  EXPECT_NEAR(b.topData(0)[0], 20 * std::log(10.0), 1e-9);
  EXPECT_NEAR(b.bottoms()[0]->diffAt(0) / -1e20, 1, 1e-9);
}

}  // namespace
}  // namespace crema::conformance
