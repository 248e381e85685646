#include <gtest/gtest.h>

#include <cmath>

#include "support/conformance.h"
#include "support/message_of.h"

namespace crema::conformance {
namespace {

LAYER_CASES(Embed) {
  const auto words = [](size_t, int, double u) { return std::floor(u * 6) - 1; };  // -1 among them
  s.add(
       "type: 'Embed' embed_param { input_dim: 5 num_output: 3 weight_filler { type: 'gaussian' std: 0.8 } bias_filler "
       "{ type: 'uniform' min: -1 max: 1 } }",
       {{4, 3}})
      .input = words;
  Case& same = s.add(
      "type: 'Embed' embed_param { input_dim: 5 num_output: 2 weight_filler { value: 0.5 } bias_filler { value: 2 } }",
      {{7}});
  same.input = words;
  same.naive = [](const auto& x) {
    Values y;
    for (double v : x[0]) y.insert(y.end(), 2, v < 0 ? 2 : 2.5);
    return y;
  };
  s.bad("type: 'Embed' embed_param { num_output: 2 }", {{3}}, "needs input_dim and num_output");
}

TEST(Embed, IndicesOutsideTheTableAreRefused) {
  Case c;
  c.description = "type: 'Embed' embed_param { num_output: 2 input_dim: 3 }", c.bottoms = {{2, 2}};
  c.input = [](size_t, int, double) { return 0.0; };
  Bench b(c, DType::kFloat32);
  for (const double index : {3.0, -2.0, std::nan("")}) {
    Bench::set(*b.bottoms()[0], 2, index);
    const std::string said = test::messageOf([&] { b.forward(); });
    EXPECT_NE(said.find("of item 2 has no row: the table has 3, 0 to 2"), std::string::npos) << said;
  }
}

}  // namespace
}  // namespace crema::conformance
