#include "support/conformance.h"

namespace crema::conformance {
namespace {

LAYER_CASES(Slice) {
  s.add("type: 'Slice' slice_param { slice_point: 1 slice_point: 4 } top: 'a' top: 'b' top: 'c'", {{2, 5, 2}}).formula =
      [](const auto& x, const auto&) {
        std::vector<Values> tops(3);
        for (size_t i = 0; i < x[0].size(); ++i) {
          const size_t channel = i / 2 % 5;
          tops[channel < 1 ? 0 : channel < 4 ? 1 : 2].push_back(x[0][i]);
        }
        return tops;
      };
  s.add("type: 'Slice' slice_param { axis: -1 } top: 'a' top: 'b'", {{3, 2, 4}}).formula = [](const auto& x,
                                                                                              const auto&) {
    std::vector<Values> tops(2);
    for (size_t i = 0; i < x[0].size(); ++i) tops[i % 4 / 2].push_back(x[0][i]);
    return tops;
  };
  s.add("type: 'Slice' slice_param { slice_dim: 2 }", {{2, 3, 2}}).naive = [](const auto& x) { return x[0]; };
  s.bad("type: 'Slice' top: 'a' top: 'b'", {{2, 5}}, "cannot be cut into 2 equal parts");
  s.bad("type: 'Slice' slice_param { slice_point: 2 slice_point: 2 } top: 'a' top: 'b' top: 'c'", {{2, 5}},
        "must rise strictly");
  s.bad("type: 'Slice' slice_param { slice_point: 6 } top: 'a' top: 'b'", {{2, 5}}, "stay inside axis 1");
  s.bad("type: 'Slice' slice_param { slice_point: 5 } top: 'a' top: 'b'", {{2, 5}}, "5 follows 5");
  s.bad("type: 'Slice' slice_param { slice_point: 1 } top: 'a'", {{2, 5}}, "1 slice_points make 2 tops, here are 1");
  s.bad("type: 'Slice' slice_param { axis: 1 slice_dim: 1 } top: 'a'", {{2, 5}}, "either axis or slice_dim");
}

}  // namespace
}  // namespace crema::conformance
