#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "support/conformance.h"

namespace crema::conformance {
namespace {

TEST(Fillers, MomentsOfTheFormulas) {
  const auto filled = [](const std::string& text, const Shape& shape) {
    Blob b(shape, DType::kFloat64);
    layers::fill(model::parseText<caffe::FillerParameter>(text, "filler"), 1, "p", b);
    return test::valuesOf(b);
  };
  const auto moments = [](const std::vector<double>& v) {
    double mean = 0, square = 0;
    for (double x : v) mean += x, square += x * x;
    return std::pair(mean / static_cast<double>(v.size()), square / static_cast<double>(v.size()));
  };
  const Shape s{100, 20, 5, 5};  // fan in 500, fan out 2500
  EXPECT_NEAR(moments(filled("type: 'xavier'", s)).second, 1.0 / 500, 5e-5);
  EXPECT_NEAR(moments(filled("type: 'msra' variance_norm: FAN_OUT", s)).second, 2.0 / 2500, 3e-5);
  EXPECT_NEAR(moments(filled("type: 'uniform' min: 2 max: 4", s)).first, 3, 0.02);
  EXPECT_NEAR(moments(filled("type: 'gaussian' mean: 1 std: 2", s)).second, 5, 0.15);
  EXPECT_EQ(moments(filled("value: 7", s)).first, 7);
  const auto sparse = filled("type: 'gaussian' sparse: 10", s);
  EXPECT_NEAR(static_cast<double>(std::count(sparse.begin(), sparse.end(), 0.0)) / static_cast<double>(sparse.size()),
              0.9, 0.01);
  const auto ball = filled("type: 'positive_unitball'", Shape{4, 6});
  for (int n = 0; n < 4; ++n)
    EXPECT_NEAR(std::accumulate(ball.begin() + 6 * n, ball.begin() + 6 * n + 6, 0.0), 1, 1e-12);
  EXPECT_EQ(filled("type: 'bilinear'", Shape{1, 1, 4, 4})[5], 0.75 * 0.75);
}

}  // namespace
}  // namespace crema::conformance
