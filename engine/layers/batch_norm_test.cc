#include <gtest/gtest.h>

#include <cmath>

#include "support/conformance.h"

namespace crema::conformance {
namespace {

std::function<Values(const std::vector<Values>&)> normalised(int channels, int inner, double eps) {
  return [=](const std::vector<Values>& x) {
    const auto c = static_cast<size_t>(channels), n = static_cast<size_t>(inner);
    const double m = static_cast<double>(x[0].size() / c);
    Values mean(c, 0.0), variance(c, 0.0), y;
    for (size_t i = 0; i < x[0].size(); ++i) mean[i / n % c] += x[0][i] / m;
    for (size_t i = 0; i < x[0].size(); ++i) variance[i / n % c] += std::pow(x[0][i] - mean[i / n % c], 2) / m;
    for (size_t i = 0; i < x[0].size(); ++i)
      y.push_back((x[0][i] - mean[i / n % c]) / std::sqrt(variance[i / n % c] + eps));
    return y;
  };
}

std::string running(const std::string& means, const std::string& variances, const std::string& total) {
  return "blobs { shape { dim: 2 } data: " + means + " } blobs { shape { dim: 2 } data: " + variances +
         " } blobs { shape { dim: 1 } data: " + total + " }";
}

// In TEST a layer without any training pass uses mean 0 and variance 0.
std::function<Values(const std::vector<Values>&)> unseen(double eps) {
  return elementwise([eps](double x) { return x / std::sqrt(eps); });
}

LAYER_CASES(BatchNorm) {
  Case& plain = s.add("type: 'BatchNorm'", {{4, 3, 2, 5}});
  plain.naive = normalised(3, 10, 1e-5), plain.inTest = unseen(1e-5f);
  Case& rows = s.add("type: 'BatchNorm' batch_norm_param { eps: 0.25 moving_average_fraction: 0.5 }", {{5, 19}});
  rows.naive = normalised(19, 1, 0.25), rows.inTest = unseen(0.25);
  Case& one = s.add("type: 'BatchNorm' param { lr_mult: 0 } param { lr_mult: 0 } param { lr_mult: 0 }", {{7}});
  one.naive = normalised(1, 7, 1e-5), one.inTest = unseen(1e-5f);  // one channel
  Case& far = s.add("type: 'BatchNorm'", {{3, 2, 8}});             // the mean is 300 standard deviations from 0
  far.input = [](size_t, int, double u) { return 100 + u; }, far.smooth = false, far.inTest = unseen(1e-5f);
  // Running statistics of two passes' weight: mean (0.5, -1), variance (4, 0.25).
  s.add("type: 'BatchNorm' batch_norm_param { use_global_stats: true eps: 0 } " +
            running("1 data: -2", "8 data: 0.5", "2"),
        {{3, 2, 4}})
      .naive = [](const auto& x) {
    Values y;
    for (size_t i = 0; i < x[0].size(); ++i) y.push_back(i / 4 % 2 ? (x[0][i] + 1) / 0.5 : (x[0][i] - 0.5) / 2);
    return y;
  };
  // No training pass yet: mean and variance are 0.
  s.add("type: 'BatchNorm' batch_norm_param { use_global_stats: true eps: 0.25 }", {{3, 2, 4}}).naive =
      elementwise([](double x) { return x / 0.5; });
  s.bad("type: 'BatchNorm' param { lr_mult: 1 }", {{2, 3}},
        "Cannot configure batch normalization statistics as layer parameters: param 0 has lr_mult 1");
  s.bad("type: 'BatchNorm' param { lr_mult: 0 } param { decay_mult: 0 }", {{2, 3}}, "param 1 has lr_mult 1");
  s.bad("type: 'BatchNorm' batch_norm_param { eps: -1 }", {{2, 3}}, "eps must not be negative");
  s.bad("type: 'BatchNorm' batch_norm_param { moving_average_fraction: 1.5 }", {{2, 3}},
        "moving_average_fraction must be in [0, 1]");
  s.bad("type: 'BatchNorm'", {Shape{}}, "needs a bottom with an axis");
  s.bad("type: 'BatchNorm' batch_norm_param { use_global_stats: true } " + running("1 data: 1", "4 data: -4", "1"),
        {{2, 2}}, "the running variance of channel 1 is -4");
}

TEST(BatchNorm, TakesGlobalStatisticsInTestsUnlessTheDescriptionSaysOtherwise) {
  Case c;
  const std::string weights = running("1 data: -2", "8 data: 0.5", "2");
  c.description = "type: 'BatchNorm' batch_norm_param { eps: 0 } " + weights, c.bottoms = {{3, 2}};
  Bench test(c, DType::kFloat64, caffe::TEST);
  test.forward();
  EXPECT_NEAR(test.topData(0)[0], (test.bottoms()[0]->dataAt(0) - 0.5) / 2, 1e-15);
  for (auto& p : test.layer().params()) EXPECT_EQ(p->diffAt(0), 0) << "a test moves nothing";
  c.description = "type: 'BatchNorm' batch_norm_param { eps: 0 use_global_stats: false } " + weights;
  Bench batch(c, DType::kFloat64, caffe::TEST);
  batch.forward();
  EXPECT_NEAR(batch.topData(0)[0] + batch.topData(0)[2] + batch.topData(0)[4], 0, 1e-14);
}

// What passes add to the running statistics, against Caffe's rule computed here.
TEST(BatchNorm, PassesLeaveMeanVarianceAndWeight) {
  Case c;
  c.description = "type: 'BatchNorm' batch_norm_param { moving_average_fraction: 0.75 }", c.bottoms = {{2, 2, 2}};
  c.input = [](size_t, int k, double) { return k * k; };  // channel 0: 0 1 16 25, channel 1: 4 9 36 49
  Bench b(c, DType::kFloat64);
  b.forward();
  const double means[] = {10.5, 24.5}, variances[] = {(441.0 / 4 + 361.0 / 4 + 121.0 / 4 + 841.0 / 4) / 3,
                                                      (1681.0 / 4 + 961.0 / 4 + 529.0 / 4 + 2401.0 / 4) / 3};
  for (const double factor : {1.0, 1.75}) {
    for (int d = 0; d < 2; ++d) {
      EXPECT_NEAR(b.layer().params()[0]->diffAt(d), factor * means[d], 1e-12);
      EXPECT_NEAR(b.layer().params()[1]->diffAt(d), factor * variances[d], 1e-12);
    }
    EXPECT_NEAR(b.layer().params()[2]->diffAt(0), factor, 1e-15);
    b.forward();
  }
  for (auto& p : b.layer().params())
    for (int i = 0; i < p->count(); ++i) EXPECT_EQ(p->dataAt(i), 0) << "the solver moves them, a pass does not";
}

}  // namespace
}  // namespace crema::conformance
