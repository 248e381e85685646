// Where the boxes of a directed graph without cycles go (Sugiyama, Tagawa, Toda 1981): each as far down as its longest
// path from a source, those of one rank side by side in the order of the mean of what they hang on, edges over several
// ranks through places that are kept free for them.
#pragma once
#include <string>
#include <vector>

#include "cli/canvas.h"

namespace crema::cli {

struct GraphBox {
  double width = 0, height = 0;
  Point centre;  // the result
};
struct GraphEdge {
  int from = 0, to = 0;  // from < to
  std::string words;
  std::vector<Point> path;  // the result
};
struct Graph {
  std::vector<GraphBox> boxes;
  std::vector<GraphEdge> edges;
  Point size;
};

void layOut(Graph& graph);

}  // namespace crema::cli
