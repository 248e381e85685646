#include "support/conformance.h"

namespace crema::conformance {
namespace {

LAYER_CASES(Crop) {
  s.add("type: 'Crop' crop_param { offset: 1 offset: 2 }", {{2, 2, 4, 5}, {1, 3, 3, 2}}).naive = [](const auto& x) {
    Values y;
    for (size_t c = 0; c < 4; ++c)
      for (size_t i = 1; i < 4; ++i)
        for (size_t j = 2; j < 4; ++j) y.push_back(x[0][(c * 4 + i) * 5 + j]);
    return y;
  };
  Case& all = s.add("type: 'Crop' crop_param { axis: 0 offset: 1 }", {{3, 2, 4}, {2, 1, 3}});
  all.naive = [](const auto& x) { return Values{x[0][13], x[0][14], x[0][15], x[0][21], x[0][22], x[0][23]}; };
  s.add("type: 'Crop' crop_param { axis: -1 }", {{2, 3, 5}, {2, 3, 4}});
  s.bad("type: 'Crop' crop_param { offset: 2 }", {{1, 1, 4, 4}, {1, 1, 3, 2}},
        "the crop for dimension 2 is out-of-bounds with size 3 and offset 2");
  s.bad("type: 'Crop' crop_param { axis: 1 offset: 2 offset: 1 }", {{1, 1, 4, 4}, {1, 1, 1, 1}},
        "one for each of the 3 cropped axes, not 2");
  s.bad("type: 'Crop'", {{1, 1, 4, 4}, {1, 1, 4}}, "both bottoms need as many axes");
}

}  // namespace
}  // namespace crema::conformance
