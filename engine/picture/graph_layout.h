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
  int from = 0, to = 0;                    // edges into a box come before those out of it
  size_t trunk = 0;                        // edges with the same number are drawn as one line
  double before = 0, after = 0, tall = 0;  // space for its words: left and right of the line, and along it
  std::vector<Point> path;                 // the result; then where the line passes the middle of its words
  Point words;
};
struct GraphLayout {
  std::vector<LaidBox> boxes;
  std::vector<LaidEdge> edges;
  bool columns = false;  // a long graph is broken into columns side by side
  Point size;            // the result: from (0, 0), without margins
};

void layOut(GraphLayout& graph);

}  // namespace crema::picture
