#include <cmath>

#include "support/conformance.h"

namespace crema::conformance {
namespace {

struct Lrn {
  size_t items, channels, h, w, size;
  double alpha, beta, k;
};

// Across channels, or within a square of the plane (where Caffe's divisor counts the padding).
std::function<Values(const std::vector<Values>&)> normalised(const Lrn& l, bool across) {
  return [=](const std::vector<Values>& x) {
    Values y;
    const auto half = static_cast<int>(l.size / 2), C = static_cast<int>(l.channels), H = static_cast<int>(l.h),
               W = static_cast<int>(l.w);
    for (size_t at = 0; at < x[0].size(); ++at) {
      const auto number = static_cast<int>(at);
      const int n = number / (C * H * W), c = number / (H * W) % C, i = number / W % H, j = number % W;
      double squares = 0;
      for (int a = -half; a <= half; ++a)
        for (int b = -half; b <= half; ++b) {
          const int cc = across ? c + a : c, ii = across ? i : i + a, jj = across ? j : j + b;
          if ((across && b) || cc < 0 || cc >= C || ii < 0 || ii >= H || jj < 0 || jj >= W) continue;
          squares += std::pow(x[0][static_cast<size_t>(((n * C + cc) * H + ii) * W + jj)], 2);
        }
      const auto size = static_cast<double>(l.size);
      y.push_back(x[0][at] * std::pow(l.k + l.alpha * squares / (across ? size : size * size), -l.beta));
    }
    return y;
  };
}

LAYER_CASES(LRN) {
  s.add("type: 'LRN' lrn_param { local_size: 3 alpha: 0.8 k: 2 }", {{2, 5, 3, 3}}).naive =
      normalised({2, 5, 3, 3, 3, 0.8f, 0.75, 2}, true);
  s.add("type: 'LRN' lrn_param { local_size: 7 alpha: 0.8 beta: 0.6 }", {{1, 4, 2, 3}}).naive =
      normalised({1, 4, 2, 3, 7, 0.8f, 0.6f, 1}, true);
  s.add("type: 'LRN' lrn_param { local_size: 3 alpha: 0.8 norm_region: WITHIN_CHANNEL }", {{2, 2, 5, 4}}).naive =
      normalised({2, 2, 5, 4, 3, 0.8f, 0.75, 1}, false);
  s.bad("type: 'LRN' lrn_param { local_size: 4 }", {{1, 3, 2, 2}}, "local_size must be odd");
}

}  // namespace
}  // namespace crema::conformance
