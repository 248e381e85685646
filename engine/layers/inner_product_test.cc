#include "support/conformance.h"

namespace crema::conformance {
namespace {

LAYER_CASES(InnerProduct) {
  s.add("type: 'InnerProduct' inner_product_param { num_output: 5 " + kFiller + " }", {{3, 2, 4}}).formula =
      [](const auto& x, const auto& p) {
        Values y;
        for (size_t n = 0; n < 3; ++n)
          for (size_t o = 0; o < 5; ++o) {
            y.push_back(p[1][o]);
            for (size_t i = 0; i < 8; ++i) y.back() += p[0][o * 8 + i] * x[0][n * 8 + i];
          }
        return std::vector<Values>{y};
      };
  s.add("type: 'InnerProduct' inner_product_param { num_output: 5 axis: 2 transpose: true " + kFiller + " }",
        {{3, 2, 4}});
  s.bad("type: 'InnerProduct' inner_product_param { }", {{3, 2}}, "num_output must be given");
  s.bad("type: 'InnerProduct' inner_product_param { num_output: 2 axis: 5 }", {{3, 2}}, "axis 5 is out of range");
  s.bad("type: 'InnerProduct' inner_product_param { num_output: 2 weight_filler { type: 'magic' } }", {{3, 2}},
        "unknown filler type 'magic'");
}

}  // namespace
}  // namespace crema::conformance
