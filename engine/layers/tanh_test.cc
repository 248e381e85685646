#include <gtest/gtest.h>

#include <cmath>

#include "support/conformance.h"

namespace crema::conformance {
namespace {

LAYER_CASES(TanH) {
  for (const double reach : {1.0, 50.0}) {
    Case& c = s.add("type: 'TanH' tanh_param { engine: CUDNN }", {{4, 9}});
    c.input = [reach](size_t, int, double u) { return reach * (2 * u - 1); };
    c.naive = elementwise([](double x) { return 1 - 2 / (std::exp(2 * x) + 1); });
  }
}

TEST(TanH, FloatsAreAsGoodAsTheLibrarys) {
  Case c;
  c.description = "type: 'TanH'", c.bottoms = {{4000}};
  c.input = [](size_t, int k, double) { return (k % 2 ? 1 : -1) * std::pow(10.0, k * 0.003 - 10); };  // 1e-10 to 100
  Bench b(c, DType::kFloat32);
  b.forward();
  for (int i = 0; i < 4000; ++i) {
    const double want = std::tanh(b.bottoms()[0]->dataAt(i));
    ASSERT_NEAR(b.tops()[0]->dataAt(i), want, 7e-8 * std::fabs(want)) << b.bottoms()[0]->dataAt(i);
  }
}

}  // namespace
}  // namespace crema::conformance
