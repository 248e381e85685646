#include <gtest/gtest.h>

#include <cmath>

#include "support/conformance.h"
#include "support/message_of.h"

namespace crema::conformance {
namespace {

LAYER_CASES(Pooling) {
  s.add("type: 'Pooling' pooling_param { pool: MAX kernel_size: 3 stride: 2 }", {{2, 3, 7, 8}});
  s.add("type: 'Pooling' pooling_param { pool: AVE kernel_size: 3 stride: 2 pad: 1 }", {{2, 3, 7, 8}});
  s.add("type: 'Pooling' pooling_param { pool: AVE global_pooling: true }", {{2, 3, 4, 5}}).naive = [](const auto& x) {
    Values y(6, 0.0);
    for (size_t i = 0; i < x[0].size(); ++i) y[i / 20] += x[0][i] / 20;
    return y;
  };
  // A maximum and its index; the last row and column of windows are clipped (CEIL) or left out (FLOOR).
  for (const bool floor : {false, true})
    s.add(std::string("type: 'Pooling' pooling_param { kernel_h: 2 kernel_w: 3 stride_h: 2 stride_w: 3 round_mode: ") +
              (floor ? "FLOOR" : "CEIL") + " } top: 'y' top: 'index'",
          {{2, 1, 5, 7}})
        .formula = [floor](const auto& x, const auto&) {
      std::vector<Values> tops(2);
      for (int n = 0; n < 2; ++n)
        for (int i = 0; i < (floor ? 2 : 3); ++i)
          for (int j = 0; j < (floor ? 2 : 3); ++j) {
            int best = i * 2 * 7 + j * 3;
            for (int a = i * 2; a < std::min(5, i * 2 + 2); ++a)
              for (int b = j * 3; b < std::min(7, j * 3 + 3); ++b)
                if (x[0][static_cast<size_t>(n * 35 + a * 7 + b)] > x[0][static_cast<size_t>(n * 35 + best)])
                  best = a * 7 + b;
            tops[0].push_back(x[0][static_cast<size_t>(n * 35 + best)]), tops[1].push_back(best);
          }
      return tops;
    };
  for (Case& c : s.cases)
    if (c.description.find("top: 'index'") != std::string::npos) c.gradientTops = 1;
  Case& drawn = s.add("type: 'Pooling' pooling_param { pool: STOCHASTIC kernel_size: 3 stride: 2 }", {{2, 3, 6, 7}});
  drawn.input = [](size_t, int, double u) { return 0.01 + u; };
  drawn.inTest = [](const auto& x) {  // the expectation of the drawn value
    Values y;
    for (size_t o = 0; o < 6 * 9; ++o) {
      double sum = 0, squares = 0;
      for (size_t i = o / 3 % 3 * 2; i < std::min<size_t>(6, o / 3 % 3 * 2 + 3); ++i)
        for (size_t j = o % 3 * 2; j < o % 3 * 2 + 3; ++j) {
          const double v = x[0][o / 9 * 42 + i * 7 + j];
          sum += v, squares += v * v;
        }
      y.push_back(squares / sum);
    }
    return y;
  };
  s.bad("type: 'Pooling' pooling_param { pool: STOCHASTIC kernel_size: 2 pad: 1 }", {{1, 1, 4, 4}},
        "Padding implemented only for average and max pooling");
  s.bad("type: 'Pooling' pooling_param { pool: STOCHASTIC kernel_size: 2 }", {{1, 1, 4, 4}},
        "which must be 0 or more; put a ReLU below it");
  s.bad("type: 'Pooling' pooling_param { pool: AVE kernel_size: 2 } top: 'a' top: 'b'", {{1, 1, 4, 4}},
        "takes 1 top blob(s), here are 2");
  for (const char* pool : {"MAX", "AVE", "STOCHASTIC"}) {  // the last of 3 rows begins at 4, below the input
    Case& thin = s.add(std::string("type: 'Pooling' pooling_param { kernel_size: 1 stride: 2 pool: ") + pool + " }",
                       {{2, 1, 4, 3}});
    thin.naive = [](const auto& x) {
      const auto at = [&](size_t i) { return x[0][i]; };
      return Values{at(0), at(2), at(6), at(8), 0, 0, at(12), at(14), at(18), at(20), 0, 0};
    };
    thin.input = [](size_t, int, double u) { return 0.01 + std::abs(u); };
    if (pool == std::string("STOCHASTIC")) thin.inTest = thin.naive;  // x x / x: the last bit may differ
  }
  Case& winners =
      s.add("type: 'Pooling' pooling_param { kernel_size: 1 stride: 2 } top: 'y' top: 'index'", {{1, 1, 3, 4}});
  winners.gradientTops = 1;
  winners.formula = [](const auto& x, const auto&) {
    return std::vector<Values>{{x[0][0], x[0][2], 0, x[0][8], x[0][10], 0}, {0, 2, -1, 8, 10, -1}};
  };
  s.add("type: 'Pooling' pooling_param { kernel_size: 1 stride: 2 round_mode: FLOOR }", {{1, 1, 4, 3}}).naive =
      [](const auto& x) {
        return Values{x[0][0], x[0][2], x[0][6], x[0][8]};
      };
  s.bad("type: 'Pooling' pooling_param { kernel_size: 2 pad: 2 }", {{1, 3, 7, 7}}, "pad 2x2 must be smaller");
  s.bad("type: 'Pooling' pooling_param { kernel_size: 2 }", {{3, 7}}, "needs 4 axes");
}

// Corners 4/9, edges 2/6, last corner 1/4: padding counts, what lies beyond it does not (observed in Caffe, 4 x 4
// ones).
TEST(Pooling, AveragesDivideByThePaddedWindow) {
  Case c;
  c.description = "type: 'Pooling' pooling_param { pool: AVE kernel_size: 3 stride: 2 pad: 1 }",
  c.bottoms = {{1, 1, 4, 4}};
  c.input = [](size_t, int, double) { return 1.0; };
  Bench b(c, DType::kFloat64);
  b.forward();
  const Values want = {4 / 9., 6 / 9., 2 / 6., 6 / 9., 1, 3 / 6., 2 / 6., 3 / 6., 1 / 4.};
  ASSERT_EQ(b.topData(0).size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(b.topData(0)[i], want[i], 1e-15);
}

// Values 1, 2, 3, 4 in a window are drawn in these proportions, and 0 never; any number of threads draws the same.
TEST(Pooling, StochasticDrawsInProportion) {
  Case c;
  c.description = "type: 'Pooling' pooling_param { pool: STOCHASTIC kernel_h: 1 kernel_w: 5 }",
  c.bottoms = {{4, 5, 500, 5}};
  c.input = [](size_t, int k, double) { return k % 5; };
  Bench b(c, DType::kFloat32), threads(c, DType::kFloat32, caffe::TRAIN, 3);
  b.forward(), threads.forward();
  EXPECT_EQ(b.topData(0), threads.topData(0));
  std::vector<int> seen(5);
  for (const double v : b.topData(0)) ++seen[static_cast<size_t>(v)];
  EXPECT_EQ(seen[0], 0);
  for (size_t v = 1; v < 5; ++v) {
    const double p = static_cast<double>(v) / 10;
    EXPECT_NEAR(seen[v], 10000 * p, 5 * std::sqrt(10000 * p * (1 - p)));
  }
  const auto before = b.topData(0);
  b.run().rank = 1;
  b.forward();
  EXPECT_NE(b.topData(0), before);
}

TEST(Pooling, StochasticTestsWithTheExpectation) {
  Case c;
  c.description = "type: 'Pooling' pooling_param { pool: STOCHASTIC kernel_size: 2 stride: 2 }",
  c.bottoms = {{1, 2, 4, 5}};
  c.input = [](size_t, int k, double u) { return k >= 20 ? 0 : u; };  // the second plane is all 0
  Bench b(c, DType::kFloat64, caffe::TEST);
  b.forward();
  const auto x = test::valuesOf(*b.bottoms()[0]);
  for (size_t o = 0; o < 12; ++o) {
    double sum = 0, squares = 0;
    for (size_t i = 0; i < 4; ++i) {
      const size_t row = o % 6 / 3 * 2 + i / 2, column = o % 3 * 2 + i % 2;
      if (column > 4) continue;
      const double v = x[o / 6 * 20 + row * 5 + column];
      sum += v, squares += v * v;
    }
    EXPECT_NEAR(b.topData(0)[o], o < 6 ? squares / sum : 0, 1e-14);
  }
  b.seedTopDiffs(), b.backward();
  for (int i = 0; i < 20; ++i) {
    const double analytic = b.bottoms()[0]->diffAt(i), value = x[static_cast<size_t>(i)], step = 1e-5;
    Bench::set(*b.bottoms()[0], i, value + step);
    const double above = b.objective();
    Bench::set(*b.bottoms()[0], i, value - step);
    const double below = b.objective();
    Bench::set(*b.bottoms()[0], i, value);
    EXPECT_NEAR(analytic, (above - below) / (2 * step), 1e-6);
  }
}

}  // namespace
}  // namespace crema::conformance
