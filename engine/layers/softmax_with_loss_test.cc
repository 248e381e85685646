#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "support/conformance.h"

namespace crema::conformance {
namespace {

LAYER_CASES(SoftmaxWithLoss) {
  Case& plain = s.add("type: 'SoftmaxWithLoss'", {{5, 4}, {5}});
  plain.classes = 4;
  plain.naive = [](const auto& x) {
    double total = 0;
    for (size_t n = 0; n < 5; ++n) {
      double z = 0;
      for (size_t c = 0; c < 4; ++c) z += std::exp(x[0][n * 4 + c]);
      total -= x[0][n * 4 + static_cast<size_t>(x[1][n])] - std::log(z);
    }
    return Values{total / 5};
  };
  s.add("type: 'SoftmaxWithLoss' loss_param { ignore_label: 1 normalization: FULL }", {{3, 4, 2}, {3, 1, 2}}).classes =
      4;
  // Scores [3][4][2]: loss and probabilities for every normalisation, with and without an ignored label.
  const struct {
    const char* options;
    int ignored;
    double divisor;  // 0: those that count
  } cases[] = {{"", -1, 0},
               {"ignore_label: 1", 1, 0},
               {"ignore_label: 1 normalization: FULL", 1, 6},
               {"ignore_label: 1 normalization: VALID", 1, 0},
               {"ignore_label: 1 normalization: BATCH_SIZE", 1, 3},
               {"normalization: NONE", -1, 1},
               {"ignore_label: 1 normalize: true", 1, 0},
               {"ignore_label: 1 normalize: false", 1, 3},
               {"ignore_label: 1 normalize: false normalization: FULL", 1, 6}};
  for (const auto& c : cases) {
    Case& one = s.add(std::string("type: 'SoftmaxWithLoss' top: 'loss' top: 'p' loss_param { ") + c.options + " }",
                      {{3, 4, 2}, {3, 1, 2}});
    one.classes = 4;
    one.formula = [c](const auto& x, const auto&) {
      Values p(24);
      double loss = 0, valid = 0;
      for (size_t o = 0; o < 3; ++o)
        for (size_t i = 0; i < 2; ++i) {
          double z = 0;
          for (size_t k = 0; k < 4; ++k) z += std::exp(x[0][(o * 4 + k) * 2 + i]);
          for (size_t k = 0; k < 4; ++k) p[(o * 4 + k) * 2 + i] = std::exp(x[0][(o * 4 + k) * 2 + i]) / z;
          const auto label = static_cast<size_t>(x[1][o * 2 + i]);
          if (static_cast<int>(label) != c.ignored) loss -= std::log(p[(o * 4 + label) * 2 + i]), ++valid;
        }
      return std::vector<Values>{{loss / (c.divisor ? c.divisor : valid)}, p};
    };
  }
  s.add("type: 'SoftmaxWithLoss' softmax_param { axis: -1 } loss_weight: 2", {{3, 2, 4}, {3, 2}}).classes = 4;
  s.bad("type: 'SoftmaxWithLoss' loss_weight: 1 loss_weight: 1", {{5, 4}, {5}}, "loss_weight needs one entry per top");
  s.bad("type: 'SoftmaxWithLoss'", {{5, 4}, {4}}, "4 labels for 5 predictions");
}

// Three tiles per item, the last one short: loss and gradient agree with double loops, with the same bits for any
// number of threads.
TEST(SoftmaxWithLoss, TilesAndThreadsChangeNothing) {
  constexpr size_t kItems = 3, kClasses = 4, kInner = 25 * 31;
  Case c;
  c.description = "type: 'SoftmaxWithLoss' loss_param { ignore_label: 2 }";
  c.bottoms = {{3, 4, 25, 31}, {3, 25, 31}}, c.classes = 4;
  Bench one(c, DType::kFloat64), three(c, DType::kFloat64, caffe::TRAIN, 3);
  for (Bench* b : {&one, &three}) b->forward(), b->seedTopDiffs(), b->backward({true, false});
  EXPECT_EQ(one.topData(0), three.topData(0));
  const Values x = test::valuesOf(*one.bottoms()[0]), labels = test::valuesOf(*one.bottoms()[1]);
  const auto counted =
      static_cast<double>(std::count_if(labels.begin(), labels.end(), [](double l) { return l != 2; }));
  double loss = 0;
  for (size_t n = 0; n < kItems; ++n)
    for (size_t p = 0; p < kInner; ++p) {
      const auto at = [&](size_t k) { return (n * kClasses + k) * kInner + p; };
      double sum = 0;
      for (size_t k = 0; k < kClasses; ++k) sum += std::exp(x[at(k)]);
      const auto label = static_cast<size_t>(labels[n * kInner + p]);
      if (label != 2) loss -= std::log(std::exp(x[at(label)]) / sum) / counted;
      for (size_t k = 0; k < kClasses; ++k) {
        const double want = label == 2 ? 0 : (std::exp(x[at(k)]) / sum - (k == label)) / counted;
        ASSERT_NEAR(one.bottoms()[0]->diffAt(static_cast<int>(at(k))), want, 1e-15);
        ASSERT_EQ(one.bottoms()[0]->diffAt(static_cast<int>(at(k))),
                  three.bottoms()[0]->diffAt(static_cast<int>(at(k))));
      }
    }
  EXPECT_NEAR(one.topData(0)[0], loss, 1e-12);
}

}  // namespace
}  // namespace crema::conformance
