#include "support/conformance.h"

namespace crema::conformance {
namespace {

// y[n][o][q] over three axes, any of them of size 1; kernel K, stride S, pad P on every axis, dilation D.
struct Up {
  int items, in, out, groups;
  std::vector<int> size, kernel, stride, pad, dilation;
  std::vector<Values> operator()(const std::vector<Values>& x, const std::vector<Values>& p) const {
    int small = 1, large = 1, taps = 1;
    std::vector<int> to(3);
    for (size_t a = 0; a < 3; ++a) {
      to[a] = stride[a] * (size[a] - 1) + dilation[a] * (kernel[a] - 1) + 1 - 2 * pad[a];
      small *= size[a], large *= to[a], taps *= kernel[a];
    }
    const int outEach = out / groups, inEach = in / groups;
    Values y(static_cast<size_t>(items * out * large), 0.0);
    for (int n = 0; n < items; ++n)
      for (int o = 0; o < out; ++o)
        for (int q = 0; q < large && p.size() > 1; ++q)
          y[static_cast<size_t>((n * out + o) * large + q)] = p[1][static_cast<size_t>(o)];
    for (int n = 0; n < items; ++n)
      for (int i = 0; i < in; ++i)
        for (int s = 0; s < small; ++s)
          for (int k = 0; k < taps; ++k) {
            int rest = s, tap = k, q = 0, step = 1;
            bool inside = true;
            for (size_t a = 3; a-- > 0;) {
              const int at = rest % size[a] * stride[a] - pad[a] + tap % kernel[a] * dilation[a];
              inside = inside && at >= 0 && at < to[a];
              q += at * step, step *= to[a], rest /= size[a], tap /= kernel[a];
            }
            for (int e = 0; inside && e < outEach; ++e) {
              const int o = i / inEach * outEach + e;
              y[static_cast<size_t>((n * out + o) * large + q)] +=
                  p[0][static_cast<size_t>((i * outEach + e) * taps + k)] *
                  x[0][static_cast<size_t>((n * in + i) * small + s)];
            }
          }
    return {y};
  }
};

LAYER_CASES(Deconvolution) {
  s.add("type: 'Deconvolution' convolution_param { num_output: 2 kernel_size: 3 stride: 2 pad: 1 " + kFiller + " }",
        {{2, 3, 4, 3}})
      .formula = Up{2, 3, 2, 1, {1, 4, 3}, {1, 3, 3}, {1, 2, 2}, {0, 1, 1}, {1, 1, 1}};
  s.add(
       "type: 'Deconvolution' convolution_param { num_output: 4 kernel_h: 2 kernel_w: 4 stride_h: 1 stride_w: 3 pad_h: "
       "0 pad_w: 2 group: 2 bias_term: false " +
           kFiller + " }",
       {{1, 6, 3, 5}})
      .formula = Up{1, 6, 4, 2, {1, 3, 5}, {1, 2, 4}, {1, 1, 3}, {0, 0, 2}, {1, 1, 1}};
  s.add(
       "type: 'Deconvolution' convolution_param { num_output: 2 kernel_size: 3 dilation: 2 dilation: 1 stride: 1 "
       "stride: 4 " +
           kFiller + " }",
       {{2, 2, 3, 4}})
      .formula = Up{2, 2, 2, 1, {1, 3, 4}, {1, 3, 3}, {1, 1, 4}, {0, 0, 0}, {1, 2, 1}};
  s.add(
       "type: 'Deconvolution' convolution_param { num_output: 2 kernel_size: 2 stride: 2 dilation: 3 " + kFiller + " }",
       {{1, 2, 3, 2}})
      .formula = Up{1, 2, 2, 1, {1, 3, 2}, {1, 2, 2}, {1, 2, 2}, {0, 0, 0}, {1, 3, 3}};
  s.add("type: 'Deconvolution' convolution_param { num_output: 3 kernel_size: 4 stride: 3 pad: 1 " + kFiller + " }",
        {{2, 2, 5}})
      .formula = Up{2, 2, 3, 1, {1, 1, 5}, {1, 1, 4}, {1, 1, 3}, {0, 0, 1}, {1, 1, 1}};
  s.add(
       "type: 'Deconvolution' convolution_param { num_output: 2 group: 2 kernel_size: 3 kernel_size: 2 kernel_size: 3 "
       "stride: 2 pad: 1 pad: 0 pad: 1 " +
           kFiller + " }",
       {{2, 2, 3, 2, 3}})
      .formula = Up{2, 2, 2, 2, {3, 2, 3}, {3, 2, 3}, {2, 2, 2}, {1, 0, 1}, {1, 1, 1}};
  s.add("type: 'Deconvolution' convolution_param { num_output: 2 kernel_size: 3 stride: 2 " + kFiller +
            " } top: 'a' top: 'b'",
        {{1, 2, 3, 3}, {1, 2, 3, 3}})
      .formula = forEachBottom(Up{1, 2, 2, 1, {1, 3, 3}, {1, 3, 3}, {1, 2, 2}, {0, 0, 0}, {1, 1, 1}});
  const Shape x{1, 3, 2, 2};
  s.bad("type: 'Deconvolution' convolution_param { num_output: 4 kernel_size: 1 pad: 2 }", {x},
        "the top would be -2 wide on axis 2");
  s.bad("type: 'Deconvolution' convolution_param { num_output: 4 kernel_size: 3 group: 2 }", {x},
        "group 2 must divide");
  s.bad("type: 'Deconvolution' convolution_param { num_output: 4 kernel_size: 3 } top: 'a' top: 'b'", {x, {1, 3, 2, 3}},
        "all bottoms need one shape");
}

}  // namespace
}  // namespace crema::conformance
