#include "support/conformance.h"

namespace crema::conformance {
namespace {

LAYER_CASES(Im2col) {
  s.add("type: 'Im2col' convolution_param { kernel_h: 2 kernel_w: 3 stride: 2 pad: 1 dilation: 1 dilation: 2 }",
        {{2, 2, 5, 6}})
      .naive = [](const auto& x) {
    Values y;
    for (int c = 0; c < 4; ++c)  // items x channels
      for (int k = 0; k < 6; ++k)
        for (int p = 0; p < 3 * 2; ++p) {
          const int i = p / 2 * 2 - 1 + k / 3, j = p % 2 * 2 - 1 + k % 3 * 2;
          y.push_back(i < 0 || i > 4 || j < 0 || j > 5 ? 0 : x[0][static_cast<size_t>((c * 5 + i) * 6 + j)]);
        }
    return y;
  };
  s.add("type: 'Im2col' convolution_param { kernel_size: 2 stride: 2 force_nd_im2col: true }", {{1, 2, 5}}).naive =
      [](const auto& x) { return Values{x[0][0], x[0][2], x[0][1], x[0][3], x[0][5], x[0][7], x[0][6], x[0][8]}; };
  s.add("type: 'Im2col' convolution_param { kernel_size: 2 pad: 1 }", {{1, 2, 3, 2, 4}});
  s.add("type: 'Im2col' convolution_param { axis: 2 kernel_size: 3 }", {{2, 2, 2, 4}});
  s.bad("type: 'Im2col' convolution_param { kernel_size: 7 }", {{1, 1, 5, 5}}, "exceeds the padded input 5x5");
}

}  // namespace
}  // namespace crema::conformance
