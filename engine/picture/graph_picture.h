// A graph as a picture: boxes with words, arrows with words beside them.
#pragma once
#include <string>
#include <vector>

#include "picture/canvas.h"

namespace crema::picture {

struct GraphBox {
  std::vector<std::string> lines;
  Colour fill;
};
struct GraphEdge {
  int from = 0, to = 0;  // edges into a box come before those out of it
  std::string words;     // lines, with \n between them
};
struct Graph {
  std::string title;
  std::vector<GraphBox> boxes;
  std::vector<GraphEdge> edges;
  std::string direction = "TB";  // Graphviz's rankdir: TB, BT, LR or RL
};

// The bytes of an SVG or a PNG, by the ending of `path`; invalid() for other endings, directions, and edges between
// boxes that are not there.
std::string drawGraph(const Graph& graph, const std::string& path);

}  // namespace crema::picture
