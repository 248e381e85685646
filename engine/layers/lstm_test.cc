#include "support/conformance.h"

namespace crema::conformance {
namespace {

LAYER_CASES(LSTM) {
  // cont: 0 in the first row, or the state of one pass would go to the next.
  const auto cont = [](size_t bottom, int k, double u) {
    return bottom != 1 ? 2 * u - 1 : static_cast<double>(k >= 3 && u > 0.3);
  };
  const std::string lstm =
      "type: 'LSTM' recurrent_param { num_output: 3 weight_filler { type: 'gaussian' std: 0.8 } bias_filler { type: "
      "'uniform' min: -1 max: 1 } ";
  s.add(lstm + "}", {{4, 2, 5}, {4, 2}}).input = cont;
  Case& still = s.add(lstm + "}", {{3, 2, 2, 2}, {3, 2}, {2, 4}});
  still.input = cont, still.otherBatch = false;  // axis 0 is time in some bottoms, streams in another
  const auto parts = [](size_t bottom, int, double u) { return bottom == 1 ? u : 2 * u - 1; };
  for (const bool fixed : {false, true}) {  // states are inputs here, and cont may be anything
    std::vector<Shape> bottoms = {{3, 2, 4}, {3, 2}, {1, 2, 3}, {1, 2, 3}};
    if (fixed) bottoms[3] = {2, 3}, bottoms.insert(bottoms.begin() + 2, Shape{2, 5});
    Case& exposed = s.add(lstm + "expose_hidden: true } top: 'h' top: 'hT' top: 'cT'", bottoms);
    exposed.input = parts, exposed.gradientTops = 1, exposed.otherBatch = false;
  }
  s.bad("type: 'LSTM' recurrent_param { }", {{2, 3, 4}, {2, 3}}, "num_output must be given");
  const std::string two = "type: 'LSTM' recurrent_param { num_output: 2 }";
  s.bad(two, {{2, 3}, {2, 3}}, "must be steps x streams x inputs");
  s.bad(two, {{2, 3, 4}, {3, 2}}, "(cont) must be 2x3");
  s.bad(two, {{2, 3, 4}, {2, 3}, {4, 1}}, "must be 3 streams");
  s.bad("type: 'LSTM' recurrent_param { num_output: 2 expose_hidden: true }", {{2, 3, 4}, {2, 3}},
        "takes 4 to 5 bottom blob(s), here are 2");
  s.bad("type: 'LSTM' recurrent_param { num_output: 2 expose_hidden: true } top: 'h' top: 'a' top: 'b'",
        {{2, 3, 4}, {2, 3}, {1, 3, 2}, {1, 2, 3}}, "must be 1x3x2, not 1x2x3");
}

}  // namespace
}  // namespace crema::conformance
