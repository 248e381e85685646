#include "support/conformance.h"

namespace crema::conformance {
namespace {

const std::string kFiller =
    "weight_filler { type: 'gaussian' std: 0.5 } bias_filler { type: 'uniform' min: -1 max: 1 }";

LAYER_CASES(Convolution) {
  s.add("type: 'Convolution' convolution_param { num_output: 4 kernel_size: 3 pad: 1 stride: 2 " + kFiller + " }",
        {{2, 3, 7, 6}});
  s.add(
      "type: 'Convolution' convolution_param { num_output: 6 kernel_h: 1 kernel_w: 2 group: 3 dilation: 2 bias_term: "
      "false " +
          kFiller + " }",
      {{1, 3, 3, 5}});
  s.add("type: 'Convolution' convolution_param { num_output: 2 kernel_size: 3 " + kFiller + " }", {{2, 2, 5}});
  const Shape x{1, 3, 7, 7};
  s.bad("type: 'Convolution' convolution_param { num_output: 4 kernel_size: 11 }", {x},
        "exceeds the padded input 7x7 (bottom is 1x3x7x7");
  s.bad("type: 'Convolution' convolution_param { num_output: 4 }", {x}, "kernel must be given");
  s.bad("type: 'Convolution' convolution_param { kernel_size: 3 }", {x}, "num_output must be given");
  s.bad("type: 'Convolution' convolution_param { num_output: 4 kernel_size: 3 group: 2 }", {x}, "group 2 must divide");
  s.bad("type: 'Convolution' convolution_param { num_output: 4 kernel_size: 3 kernel_h: 2 kernel_w: 2 }", {x},
        "not both");
}

}  // namespace
}  // namespace crema::conformance
