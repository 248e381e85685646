#include <gtest/gtest.h>

#include <cmath>

#include "support/conformance.h"
#include "support/message_of.h"

namespace crema::conformance {
namespace {

LAYER_CASES(SigmoidCrossEntropyLoss) {
  const struct {
    const char* options;
    bool ignore;
    double divisor;  // 0: those that count
  } cases[] = {{"", false, 5},
               {"loss_param { ignore_label: -1 }", true, 5},
               {"loss_param { ignore_label: -1 normalization: VALID }", true, 0},
               {"loss_param { ignore_label: -1 normalize: true }", true, 0},
               {"loss_param { normalize: false }", false, 5},
               {"loss_param { ignore_label: -1 normalization: FULL }", true, 30},
               {"loss_param { normalization: NONE }", false, 1}};
  for (const auto& c : cases) {
    Case& one = s.add(std::string("type: 'SigmoidCrossEntropyLoss' ") + c.options, {{5, 2, 3}, {5, 6}});
    one.input = [](size_t bottom, int, double u) { return bottom == 0 ? 8 * u - 4 : u < 0.3 ? -1 : u; };
    if (!c.ignore) one.input = [](size_t bottom, int, double u) { return bottom == 0 ? 8 * u - 4 : u; };
    one.naive = [c](const auto& x) {
      double sum = 0, valid = 0;
      for (size_t i = 0; i < 30; ++i) {
        const double t = x[1][i], p = 1 / (1 + std::exp(-x[0][i]));
        if (c.ignore && t == -1) continue;
        sum -= t * std::log(p) + (1 - t) * std::log(1 - p), ++valid;
      }
      return Values{sum / (c.divisor ? c.divisor : valid)};
    };
  }
  s.bad("type: 'SigmoidCrossEntropyLoss'", {{4, 3}, {4, 2}}, "inputs must have the same count: bottom 0 is 4x3");
}

TEST(SigmoidCrossEntropyLoss, LargeScoresStayFiniteAndTargetsAreNumbers) {
  Case c;
  c.description = "type: 'SigmoidCrossEntropyLoss'", c.bottoms = {{2, 1}, {2, 1}};
  c.input = [](size_t bottom, int k, double) { return bottom ? 1.0 : k ? 1000.0 : -1000.0; };
  Bench b(c, DType::kFloat32);
  b.forward(), b.seedTopDiffs(), b.backward();
  EXPECT_EQ(b.topData(0)[0], 500);
  EXPECT_EQ(b.bottoms()[0]->diffAt(0), -0.5);
  EXPECT_EQ(b.bottoms()[0]->diffAt(1), 0);
  Bench::set(*b.bottoms()[1], 1, std::nan(""));
  EXPECT_NE(test::messageOf([&] { b.forward(); }).find("of item 1 is no number"), std::string::npos);
}

}  // namespace
}  // namespace crema::conformance
