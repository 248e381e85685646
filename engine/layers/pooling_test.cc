#include "support/conformance.h"

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
  s.bad("type: 'Pooling' pooling_param { kernel_size: 2 pad: 2 }", {{1, 3, 7, 7}}, "pad 2x2 must be smaller");
  s.bad("type: 'Pooling' pooling_param { kernel_size: 2 }", {{3, 7}}, "needs 4 axes");
}

}  // namespace
}  // namespace crema::conformance
