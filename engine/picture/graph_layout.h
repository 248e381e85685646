// Where the boxes of a directed graph without cycles go (Sugiyama, Tagawa, Toda 1981): each as far down as its longest
// path from a source, those of one rank side by side in the order of the mean of what they hang on, edges over several
// ranks through places that are kept free for them.
#pragma once
#include <utility>
#include <vector>

#include "picture/canvas.h"

namespace crema {

struct LaidBox {
  double width = 0, height = 0;
  Point centre;  // the result
};
struct LaidEdge {
  int from = 0, to = 0;     // an edge comes behind all that lead to its `from`
  std::vector<Point> path;  // the result
};
struct GraphLayout {
  std::vector<LaidBox> boxes;
  std::vector<LaidEdge> edges;
  Point size;
};

void layOut(GraphLayout& graph);  // downwards

}  // namespace crema
