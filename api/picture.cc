// A graph of the host's as a picture.
#include "picture/graph_picture.h"

#include <sstream>

#include "api/handles.h"

using namespace crema;
using namespace crema::api;

namespace {

thread_local std::string drawn;

picture::GraphBox boxOf(const crema_box& from) {
  picture::GraphBox box;
  std::istringstream lines(from.text);
  for (std::string line; std::getline(lines, line);) box.lines.push_back(line);
  const auto part = [&](int shift) { return static_cast<unsigned char>(from.colour >> shift); };
  box.fill = {part(16), part(8), part(0)};
  return box;
}

}  // namespace

int crema_draw(const char* title, const crema_box* boxes, int box_count, const crema_edge* edges, int edge_count,
               const char* rankdir, const char* format, const char** bytes, size_t* size) {
  return guard([&] {
    picture::Graph graph;
    graph.title = title, graph.direction = rankdir;
    for (int i = 0; i < box_count; ++i) graph.boxes.push_back(boxOf(boxes[i]));
    for (int i = 0; i < edge_count; ++i) graph.edges.push_back({edges[i].from, edges[i].to, edges[i].text});
    drawn = picture::drawGraph(graph, "." + std::string(format));
    *bytes = drawn.data(), *size = drawn.size();
  });
}
