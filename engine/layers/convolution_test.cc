#include "support/conformance.h"

namespace crema::conformance {
namespace {

// Three spatial axes, every tap looked up.
struct Volume {
  int items, in, out, groups;
  std::vector<int> size, kernel, stride, pad, dilation;
  std::vector<Values> operator()(const std::vector<Values>& x, const std::vector<Values>& p) const {
    std::vector<int> to(3);
    for (size_t a = 0; a < 3; ++a) to[a] = (size[a] + 2 * pad[a] - dilation[a] * (kernel[a] - 1) - 1) / stride[a] + 1;
    Values y;
    for (int n = 0; n < items; ++n)
      for (int o = 0; o < out; ++o)
        for (int q = 0; q < to[0] * to[1] * to[2]; ++q) {
          const std::vector<int> at = {q / (to[1] * to[2]), q / to[2] % to[1], q % to[2]};
          double sum = p.size() > 1 ? p[1][static_cast<size_t>(o)] : 0;
          for (int c = 0; c < in / groups; ++c)
            for (int k = 0; k < kernel[0] * kernel[1] * kernel[2]; ++k) {
              const std::vector<int> tap = {k / (kernel[1] * kernel[2]), k / kernel[2] % kernel[1], k % kernel[2]};
              int from = n * in + o / (out / groups) * (in / groups) + c;
              bool inside = true;
              for (size_t a = 0; a < 3; ++a) {
                const int i = at[a] * stride[a] - pad[a] + tap[a] * dilation[a];
                inside = inside && i >= 0 && i < size[a];
                from = from * size[a] + i;
              }
              const int w = (o * (in / groups) + c) * kernel[0] * kernel[1] * kernel[2] + k;
              if (inside) sum += p[0][static_cast<size_t>(w)] * x[0][static_cast<size_t>(from)];
            }
          y.push_back(sum);
        }
    return {y};
  }
};

LAYER_CASES(Convolution) {
  s.add(
       "type: 'Convolution' convolution_param { num_output: 4 kernel_size: 2 kernel_size: 3 kernel_size: 2 stride: 2 "
       "stride: 1 stride: 1 pad: 1 dilation: 1 dilation: 1 dilation: 2 group: 2 " +
           kFiller + " }",
       {{2, 4, 3, 4, 5}})
      .formula = Volume{2, 4, 4, 2, {3, 4, 5}, {2, 3, 2}, {2, 1, 1}, {1, 1, 1}, {1, 1, 2}};
  s.add("type: 'Convolution' convolution_param { num_output: 2 kernel_size: 3 bias_term: false force_nd_im2col: true " +
            kFiller + " }",
        {{1, 2, 4, 3, 3}})
      .formula = Volume{1, 2, 2, 1, {4, 3, 3}, {3, 3, 3}, {1, 1, 1}, {0, 0, 0}, {1, 1, 1}};
  s.add("type: 'Convolution' convolution_param { num_output: 3 kernel_size: 1 kernel_size: 2 kernel_size: 2 " +
            kFiller + " } top: 'a' top: 'b'",
        {{2, 2, 1, 3, 3}, {2, 2, 1, 3, 3}})
      .formula = forEachBottom(Volume{2, 2, 3, 1, {1, 3, 3}, {1, 2, 2}, {1, 1, 1}, {0, 0, 0}, {1, 1, 1}});
  s.add("type: 'Convolution' convolution_param { num_output: 2 kernel_size: 2 " + kFiller + " }", {{1, 2, 2, 3, 2, 3}});
  s.add("type: 'Convolution' convolution_param { num_output: 3 axis: 1 " + kFiller + " }", {{3, 4}});
  s.add("type: 'Convolution' convolution_param { num_output: 4 kernel_size: 3 pad: 1 stride: 2 " + kFiller + " }",
        {{2, 3, 7, 6}});
  s.add(
      "type: 'Convolution' convolution_param { num_output: 6 kernel_h: 1 kernel_w: 2 group: 3 dilation: 2 bias_term: "
      "false " +
          kFiller + " }",
      {{1, 3, 3, 5}});
  s.add("type: 'Convolution' convolution_param { num_output: 2 kernel_size: 3 " + kFiller + " }", {{2, 2, 5}});
  s.add(
       "type: 'Convolution' convolution_param { num_output: 4 kernel_size: 2 kernel_size: 3 kernel_size: 2 stride: "
       "65536 "
       "pad: 1 group: 2 " +
           kFiller + " }",
       {{2, 4, 3, 4, 5}})
      .formula = Volume{2, 4, 4, 2, {3, 4, 5}, {2, 3, 2}, {65536, 65536, 65536}, {1, 1, 1}, {1, 1, 1}};
  const Shape x{1, 3, 7, 7};
  s.bad("type: 'Convolution' convolution_param { num_output: 4 kernel_size: 11 }", {x},
        "exceeds the padded input 7x7 (bottom is 1x3x7x7");
  s.bad("type: 'Convolution' convolution_param { num_output: 4 kernel_size: 3 kernel_size: 2 }", {{1, 2, 5, 5, 5}},
        "kernel_size is given 2 times");
  s.bad("type: 'Convolution' convolution_param { num_output: 4 kernel_size: 4 }", {{1, 2, 5, 3, 5}},
        "exceeds the padded input 5x3x5");
  s.bad("type: 'Convolution' convolution_param { num_output: 4 }", {x}, "kernel_size must be given");
  s.bad("type: 'Convolution' convolution_param { kernel_size: 3 }", {x}, "num_output must be given");
  s.bad("type: 'Convolution' convolution_param { num_output: 4 kernel_size: 3 group: 2 }", {x}, "group 2 must divide");
  s.bad("type: 'Convolution' convolution_param { num_output: 4 kernel_size: 3 kernel_h: 2 kernel_w: 2 }", {x},
        "not both");
}

}  // namespace
}  // namespace crema::conformance
