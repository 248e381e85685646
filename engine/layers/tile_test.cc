#include "support/conformance.h"

namespace crema::conformance {
namespace {

LAYER_CASES(Tile) {
  s.add("type: 'Tile' tile_param { tiles: 3 }", {{2, 2, 3}}).naive = [](const auto& x) {
    Values y;
    for (size_t n = 0; n < 2; ++n)
      for (size_t t = 0; t < 3; ++t)
        for (size_t k = 0; k < 6; ++k) y.push_back(x[0][n * 6 + k]);
    return y;
  };
  s.add("type: 'Tile' tile_param { axis: -1 tiles: 2 }", {{3, 2}}).naive = [](const auto& x) {
    return Values{x[0][0], x[0][1], x[0][0], x[0][1], x[0][2], x[0][3],
                  x[0][2], x[0][3], x[0][4], x[0][5], x[0][4], x[0][5]};
  };
  s.add("type: 'Tile' tile_param { axis: 0 tiles: 2 }", {{3, 5}});
  s.bad("type: 'Tile'", {{2, 3}}, "Number of tiles must be positive");
  s.bad("type: 'Tile' tile_param { tiles: 2000000000 }", {{2, 3}}, "exceeds INT_MAX");
}

}  // namespace
}  // namespace crema::conformance
