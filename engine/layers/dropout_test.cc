#include <gtest/gtest.h>

#include <cmath>

#include "support/conformance.h"

namespace crema::conformance {
namespace {

LAYER_CASES(Dropout) {
  // Element i is kept or dropped by number i of the stream of (seed, layer, step, rank): word i mod 4 of block i / 4.
  Case& some = s.add("type: 'Dropout' dropout_param { dropout_ratio: 0.3 }", {{4, 25}});
  some.naive = [](const auto& x) {
    const RandomStream stream({1, RandomPurpose::kDropout, hashName("layer"), 0, 0});
    Values y;
    for (size_t i = 0; i < x[0].size(); ++i)
      y.push_back(stream.block(i / 4)[i % 4] / 4294967296.0 < 0.3f ? 0 : x[0][i] / (1 - double{0.3f}));
    return y;
  };
  some.inTest = [](const auto& x) { return x[0]; };
  s.bad("type: 'Dropout' dropout_param { dropout_ratio: 1 }", {{3}}, "dropout_ratio must be in [0, 1)");
}

TEST(Dropout, DependsOnStepRankAndNothingElse) {
  Case c;
  c.description = "type: 'Dropout' dropout_param { dropout_ratio: 0.25 }", c.bottoms = {{100, 100}};
  Bench a(c, DType::kFloat32), b(c, DType::kFloat32, caffe::TRAIN, 3), test(c, DType::kFloat32, caffe::TEST);
  a.forward(), b.forward();
  EXPECT_EQ(a.topData(0), b.topData(0));
  int zeros = 0;
  for (double v : a.topData(0)) zeros += v == 0;
  EXPECT_NEAR(zeros, 2500, 5 * std::sqrt(10000 * 0.25 * 0.75));
  const auto before = a.topData(0);
  a.run().step = 1;
  a.forward();
  EXPECT_NE(a.topData(0), before);
  a.run().step = 0, a.run().rank = 1;
  a.forward();
  EXPECT_NE(a.topData(0), before);
  test.forward();
  EXPECT_EQ(test.topData(0), test::valuesOf(*test.bottoms()[0]));
}

}  // namespace
}  // namespace crema::conformance
