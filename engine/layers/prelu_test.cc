#include <gtest/gtest.h>

#include <cmath>

#include "support/conformance.h"

namespace crema::conformance {
namespace {

LAYER_CASES(PReLU) {
  const auto formula = [](int channels, int inner) {
    return [=](const auto& x, const auto& p) {
      Values y;
      for (size_t i = 0; i < x[0].size(); ++i) {
        const double v = x[0][i],
                     a = p[0][p[0].size() == 1 ? 0 : i / static_cast<size_t>(inner) % static_cast<size_t>(channels)];
        y.push_back(std::max(v, 0.0) + a * std::min(v, 0.0));
      }
      return std::vector<Values>{y};
    };
  };
  s.add("type: 'PReLU' prelu_param { filler { type: 'gaussian' std: 0.5 } }", {{3, 5, 2, 3}}).formula = formula(5, 6);
  s.add("type: 'PReLU' prelu_param { filler { type: 'uniform' min: -1 } }", {{4, 3}}).formula = formula(3, 1);
  s.add("type: 'PReLU' prelu_param { channel_shared: true filler { value: -0.5 } }", {{2, 3, 4}}).formula =
      formula(3, 4);
  s.add("type: 'PReLU'", {{2, 7}}).naive = elementwise([](double x) { return x > 0 ? x : 0.25 * x; });
  s.bad("type: 'PReLU'", {{4}}, "Number of axes of bottom blob must be >=2");
}

TEST(PReLU, InfinityAndNaNPassThrough) {
  Case c;
  c.description = "type: 'PReLU'", c.bottoms = {{1, 3}};
  c.input = [](size_t, int k, double) { return k == 0 ? INFINITY : k == 1 ? -INFINITY : NAN; };
  Bench b(c, DType::kFloat32);
  b.forward();
  EXPECT_EQ(b.topData(0)[0], INFINITY);
  EXPECT_EQ(b.topData(0)[1], -INFINITY);
  EXPECT_TRUE(std::isnan(b.topData(0)[2]));
}

}  // namespace
}  // namespace crema::conformance
