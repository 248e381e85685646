// crema_draw(): a graph of the host as a picture.
#include "picture/graph_picture.h"

#include <sstream>

#include "api/handles.h"

using namespace crema;
using namespace crema::api;

namespace {

thread_local std::string drawn;

// Element i of the host's array, whose elements may be larger than this library's struct.
template <class T>
const T& at(const T* first, size_t size, int i) {
  return *reinterpret_cast<const T*>(reinterpret_cast<const char*>(first) + size * static_cast<size_t>(i));
}

picture::GraphBox boxOf(const crema_box& from) {
  picture::GraphBox box;
  std::istringstream lines(from.text);
  for (std::string line; std::getline(lines, line);) box.lines.push_back(line);
  const auto part = [&](int shift) { return static_cast<unsigned char>(from.colour >> shift); };
  box.fill = {part(16), part(8), part(0)};
  return box;
}

}  // namespace

int crema_draw(const crema_graph* given, const char* format, const char** bytes, size_t* size) {
  return guard([&] {
    checkSize("crema_graph", given->size, sizeof *given);
    checkSize("crema_box", given->box_size, sizeof(crema_box)),
        checkSize("crema_edge", given->edge_size, sizeof(crema_edge));
    picture::Graph graph;
    graph.title = given->title, graph.direction = given->rankdir;
    for (int i = 0; i < given->box_count; ++i) graph.boxes.push_back(boxOf(at(given->boxes, given->box_size, i)));
    for (int i = 0; i < given->edge_count; ++i) {
      const crema_edge& edge = at(given->edges, given->edge_size, i);
      graph.edges.push_back({edge.from, edge.to, edge.text});
    }
    drawn = picture::drawGraph(graph, "." + std::string(format));
    *bytes = drawn.data(), *size = drawn.size();
  });
}
