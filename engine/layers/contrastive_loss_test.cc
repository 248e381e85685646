#include <gtest/gtest.h>

#include <cmath>

#include "support/conformance.h"
#include "support/message_of.h"

namespace crema::conformance {
namespace {

double square(const std::vector<Values>& x, size_t n, size_t each) {
  double sum = 0;
  for (size_t i = n * each; i < (n + 1) * each; ++i) sum += (x[0][i] - x[1][i]) * (x[0][i] - x[1][i]);
  return sum;
}

LAYER_CASES(ContrastiveLoss) {
  const auto pairs = [](size_t bottom, int, double u) { return bottom == 2 ? std::floor(u * 2) : u; };
  for (const bool legacy : {false, true}) {
    Case& c = s.add(std::string("type: 'ContrastiveLoss' contrastive_loss_param { margin: 0.75 ") +
                        (legacy ? "legacy_version: true }" : "}"),
                    {{12, 3, 1, 1}, {12, 3, 1, 1}, {12}});
    c.input = pairs;
    c.smooth = legacy;  // not checked by differences because of Caffe's 1e-4; see below
    c.naive = [legacy](const auto& x) {
      double loss = 0;
      for (size_t n = 0; n < 12; ++n) {
        const double d2 = square(x, n, 3), m = std::max(0.75f - (legacy ? d2 : std::sqrt(d2)), 0.0);
        loss += x[2][n] != 0 ? d2 : legacy ? m : m * m;
      }
      return Values{loss / 24};
    };
  }
  Case& near = s.add("type: 'ContrastiveLoss'", {{4, 3}, {4, 3}, {4, 1}});
  near.input = [](size_t bottom, int, double u) { return bottom == 2 ? 1 : u; };
  s.bad("type: 'ContrastiveLoss'", {{4, 3}, {4, 2}, {4}}, "pairs and need one shape: 4x3 and 4x2");
  s.bad("type: 'ContrastiveLoss'", {{4, 3}, {4, 3}, {3}}, "4 pairs need 4 numbers");
}

// For dissimilar pairs the gradient is the derivative times d / (d + 1e-4), and 0 where d = 0 or d >= margin.
TEST(ContrastiveLoss, GradientOfPairsApartIsCaffes) {
  Case c;
  c.description = "type: 'ContrastiveLoss'", c.bottoms = {{6, 2}, {6, 2}, {6}};
  c.input = [](size_t bottom, int k, double u) {
    return bottom == 2 ? 0 : k < 2 ? 0.5 : k < 4 ? 3.0 * static_cast<double>(bottom) : u;
  };
  Bench b(c, DType::kFloat64);
  b.forward(), b.seedTopDiffs(), b.backward();
  const std::vector<Values> x = {test::valuesOf(*b.bottoms()[0]), test::valuesOf(*b.bottoms()[1])};
  for (size_t side = 0; side < 2; ++side)
    for (int i = 0; i < 12; ++i) {
      const double got = b.bottoms()[side]->diffAt(i), d = std::sqrt(square(x, static_cast<size_t>(i) / 2, 2)),
                   step = 1e-6;
      if (i < 4) {
        EXPECT_EQ(got, 0);
        continue;
      }
      Blob& at = *b.bottoms()[side];
      Bench::set(at, i, x[side][static_cast<size_t>(i)] + step);
      const double above = b.objective();
      Bench::set(at, i, x[side][static_cast<size_t>(i)] - step);
      const double below = b.objective();
      Bench::set(at, i, x[side][static_cast<size_t>(i)]);
      EXPECT_NEAR(got, (above - below) / (2 * step) * d / (d + 1e-4), 1e-8);
    }
  Bench::set(*b.bottoms()[2], 4, std::nan(""));
  EXPECT_NE(test::messageOf([&] { b.forward(); }).find("of pair 4; 1 (together) or 0 (apart)"), std::string::npos);
}

}  // namespace
}  // namespace crema::conformance
