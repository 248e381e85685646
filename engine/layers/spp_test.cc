#include <gtest/gtest.h>

#include <cmath>

#include "support/conformance.h"

namespace crema::conformance {
namespace {

// Caffe's rule for b bins on n values, as Pooling's options: kernel, stride = kernel, pad; window i of the padded
// image.
struct Level {
  int b, n;
  int kernel() const { return (n + b - 1) / b; }
  int pad() const { return (kernel() * b - n + 1) / 2; }
  int from(int i) const { return i * kernel() - pad(); }
  int to(int i) const { return std::min(from(i) + kernel(), n + pad()); }
};

std::function<Values(const std::vector<Values>&)> pyramid(int planes, int h, int w, int height, bool max, int items) {
  return [=](const std::vector<Values>& x) {
    Values y;
    for (int n = 0; n < items; ++n)
      for (int l = 0; l < height; ++l)
        for (int c = 0; c < planes / items; ++c)
          for (int bin = 0; bin < 1 << 2 * l; ++bin) {
            const Level rows{1 << l, h}, columns{1 << l, w};
            const int i = bin >> l, j = bin & ((1 << l) - 1);
            double best = -1e9, sum = 0;
            for (int a = std::max(0, rows.from(i)); a < std::min(h, rows.to(i)); ++a)
              for (int b = std::max(0, columns.from(j)); b < std::min(w, columns.to(j)); ++b) {
                const double v = x[0][static_cast<size_t>(((n * (planes / items) + c) * h + a) * w + b)];
                best = std::max(best, v), sum += v;
              }
            y.push_back(max ? best : sum / ((rows.to(i) - rows.from(i)) * (columns.to(j) - columns.from(j))));
          }
    return y;
  };
}

LAYER_CASES(SPP) {
  s.add("type: 'SPP' spp_param { pyramid_height: 3 }", {{2, 2, 9, 7}}).naive = pyramid(4, 9, 7, 3, true, 2);
  s.add("type: 'SPP' spp_param { pyramid_height: 3 pool: AVE }", {{2, 3, 7, 10}}).naive =
      pyramid(6, 7, 10, 3, false, 2);
  s.add("type: 'SPP' spp_param { pyramid_height: 1 pool: AVE }", {{2, 3, 4, 5}}).naive = pyramid(6, 4, 5, 1, false, 2);
  Case& drawn = s.add("type: 'SPP' spp_param { pyramid_height: 2 pool: STOCHASTIC }", {{2, 2, 5, 6}});
  drawn.input = [](size_t, int, double u) { return 0.01 + u; };
  drawn.inTest = [](const auto& x) {  // the expectation of the drawn value; divisors cancel
    auto squared = x;
    for (double& v : squared[0]) v *= v;
    const Values sums = pyramid(4, 5, 6, 2, false, 2)(x);
    Values y = pyramid(4, 5, 6, 2, false, 2)(squared);
    for (size_t i = 0; i < y.size(); ++i) y[i] /= sums[i];
    return y;
  };
  // Caffe aborts here: bins of the paper, 5 values on 4 bins as [0,2) [1,3) [2,4) [3,5).
  s.add("type: 'SPP' spp_param { pyramid_height: 3 pool: AVE }", {{1, 1, 5, 5}}).naive = [](const auto& x) {
    Values y = pyramid(1, 5, 5, 2, false, 1)(x);
    for (size_t i = 0; i < 4; ++i)
      for (size_t j = 0; j < 4; ++j)
        y.push_back((x[0][i * 5 + j] + x[0][i * 5 + j + 1] + x[0][i * 5 + j + 5] + x[0][i * 5 + j + 6]) / 4);
    return y;
  };
  s.add("type: 'SPP' spp_param { pyramid_height: 3 }", {{1, 2, 2, 1}});  // more bins than values
  s.bad("type: 'SPP'", {{1, 1, 4, 4}}, "pyramid_height must be given");
  s.bad("type: 'SPP' spp_param { pyramid_height: 2 }", {{4, 4}}, "SPP needs 4 axes");
  s.bad("type: 'SPP' spp_param { pyramid_height: 2 }", {{1, 1, 0, 4}}, "Input dimensions cannot be zero");
}

// The same number of outputs for any image size.
TEST(SPP, OneLengthForAllSizes) {
  for (int n = 1; n < 40; ++n) {
    Case c;
    c.description = "type: 'SPP' spp_param { pyramid_height: 4 }", c.bottoms = {{1, 2, n, 41 - n}};
    Bench b(c, DType::kFloat32);
    b.forward();
    ASSERT_EQ(b.tops()[0]->shape().brief(), "1x170");
  }
}

}  // namespace
}  // namespace crema::conformance
