// Where the boxes, edges and edges' words of a directed graph without cycles go, downwards (Sugiyama, Tagawa, Toda
// 1981). Boxes stand in the even ranks, each as far down as its longest path from a source; an edge has a place of its
// own in every rank that it passes, one of the odd ones wide enough for its words; edges with the same words from one
// box are one line up to where the first turns off. Lines are upright inside ranks and slanted only between them, where
// nothing stands: no line meets words or a box that is not its own, whatever the graph.
#pragma once
#include <vector>

#include "picture/canvas.h"

namespace crema::picture {

struct LaidBox {
  double width = 0, height = 0;
  Point centre;  // the result
};
struct LaidEdge {
  int from = 0, to = 0;                    // an edge comes behind all that lead to its `from`
  size_t trunk = 0;                        // a number that edges which are one line share
  double before = 0, after = 0, tall = 0;  // room for its words: left and right of the line, and along it
  std::vector<Point> path;                 // the result, and where the line passes the middle of its words
  Point words;
};
struct GraphLayout {
  std::vector<LaidBox> boxes;
  std::vector<LaidEdge> edges;
  bool columns = false;  // what is much longer than broad goes on in a further column, beside the one before
  Point size;            // the result: from (0, 0), without margins
};

void layOut(GraphLayout& graph);

}  // namespace crema::picture
