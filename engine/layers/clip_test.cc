#include <gtest/gtest.h>

#include <cmath>

#include "support/conformance.h"

namespace crema::conformance {
namespace {

LAYER_CASES(Clip) {
  s.add("type: 'Clip' clip_param { min: -0.25 max: 0.5 }", {{5, 11}}).naive =
      elementwise([](double x) { return std::max(-0.25, std::min(x, 0.5)); });
  // Both ends let the gradient through (a central difference cannot check a point where the one-sided ones differ).
  Case& ends = s.add("type: 'Clip' clip_param { min: -0.5 max: 0.5 }", {{3, 3}});
  ends.input = [](size_t, int k, double) { return (k % 5 - 2) * 0.5; };
  ends.naive = elementwise([](double x) { return x < -0.5 ? -0.5 : x > 0.5 ? 0.5 : x; }), ends.smooth = false;
  s.bad("type: 'Clip'", {{1}}, "needs clip_param with min and max");
  s.bad("type: 'Clip' clip_param { min: 1 max: -1 }", {{1}}, "min 1 must not be above max -1");
}

TEST(Clip, NaNStays) {
  Case c;
  c.description = "type: 'Clip' clip_param { min: -0.5 max: 0.5 }", c.bottoms = {{1}};
  c.input = [](size_t, int, double) { return NAN; };
  Bench b(c, DType::kFloat32);
  b.forward();
  EXPECT_TRUE(std::isnan(b.topData(0)[0]));
}

TEST(Clip, TheEndsLetTheGradientThrough) {
  Case c;
  c.description = "type: 'Clip' clip_param { min: -0.5 max: 0.5 }", c.bottoms = {{5}};
  c.input = [](size_t, int k, double) { return (k - 2) * 0.5; };
  Bench b(c, DType::kFloat32);
  b.forward();
  b.tops()[0]->fillDiff(3);
  b.backward();
  for (int i = 0; i < 5; ++i) EXPECT_EQ(b.bottoms()[0]->diffAt(i), i == 0 || i == 4 ? 0 : 3);
}

}  // namespace
}  // namespace crema::conformance
