#include "picture/graph_picture.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "picture/graph_layout.h"

namespace crema {
namespace {

constexpr double kLetter = 9, kSmall = 7, kLine = 15, kTitle = 30;
constexpr double kRoom = 200;  // words of edges may stand beside the last box
constexpr Colour kArrow{90, 90, 90}, kInk{20, 20, 20};

bool sideways(const Graph& g) { return g.direction == "LR" || g.direction == "RL"; }

// Laid out downwards; other directions are that, turned or mirrored.
GraphLayout laid(const Graph& g) {
  GraphLayout out;
  for (const GraphBox& b : g.boxes) {
    double wide = 0;
    for (const auto& l : b.lines) wide = std::max(wide, Canvas::textWidth(l, kLetter));
    LaidBox box{wide + 20, kLine * static_cast<double>(b.lines.size()) + 10, {}};
    if (sideways(g)) std::swap(box.width, box.height);
    out.boxes.push_back(box);
  }
  for (const GraphEdge& e : g.edges) out.edges.push_back({e.from, e.to, {}});
  layOut(out);
  const bool back = g.direction == "BT" || g.direction == "RL";
  const auto turn = [&](Point p) {
    if (back) p.y = out.size.y - p.y;
    return sideways(g) ? Point{p.y, p.x} : p;
  };
  for (LaidBox& b : out.boxes) {
    b.centre = turn(b.centre);
    if (sideways(g)) std::swap(b.width, b.height);
  }
  for (LaidEdge& e : out.edges)
    for (Point& p : e.path) p = turn(p);
  if (sideways(g)) std::swap(out.size.x, out.size.y);
  return out;
}

void arrow(Canvas& canvas, const std::vector<Point>& path, const std::string& words) {
  canvas.line(path, kArrow, 1.2);
  const Point end = path.back(), before = path[path.size() - 2];
  const double dx = end.x - before.x, dy = end.y - before.y, length = std::max(1e-9, std::hypot(dx, dy));
  const double ux = dx / length, uy = dy / length;
  canvas.line(
      {{end.x - 7 * ux + 4 * uy, end.y - 7 * uy - 4 * ux}, end, {end.x - 7 * ux - 4 * uy, end.y - 7 * uy + 4 * ux}},
      kArrow, 1.2);
  if (words.empty()) return;
  if (std::fabs(dx) > 2 * std::fabs(dy))  // above a flat arrow, beside a steep one
    canvas.text({end.x - dx / 2, end.y - dy / 2 - 5}, words, Anchor::kMiddle, kSmall, kArrow);
  else
    canvas.text({end.x - dx * 0.35 + 5, end.y - dy * 0.35}, words, Anchor::kStart, kSmall, kArrow);
}

void check(const Graph& g) {
  if (g.direction != "TB" && g.direction != "BT" && g.direction != "LR" && g.direction != "RL")
    invalid("a graph runs TB, BT, LR or RL, not '{}'", g.direction);
  const int boxes = static_cast<int>(g.boxes.size());
  for (const GraphEdge& e : g.edges)
    if (e.from < 0 || e.to < 0 || e.from >= boxes || e.to >= boxes || e.from == e.to)
      invalid("an edge from box {} to box {}, and there are {}", e.from, e.to, boxes);
}

}  // namespace

std::string drawGraph(const Graph& g, const std::string& path) {
  check(g);
  const GraphLayout layout = laid(g);
  const auto canvas = canvasFor(path, layout.size.x + kRoom, layout.size.y + kTitle);
  canvas->text({20, 22}, g.title, Anchor::kStart, 12, kInk);
  const auto down = [&](Point p) { return Point{p.x, p.y + kTitle}; };
  for (size_t e = 0; e < g.edges.size(); ++e) {
    std::vector<Point> points;
    for (const Point& p : layout.edges[e].path) points.push_back(down(p));
    arrow(*canvas, points, g.edges[e].words);
  }
  for (size_t i = 0; i < g.boxes.size(); ++i) {
    const LaidBox& b = layout.boxes[i];
    const Point c = down(b.centre);
    canvas->box({c.x - b.width / 2, c.y - b.height / 2}, {b.width, b.height}, g.boxes[i].fill, kArrow);
    for (size_t l = 0; l < g.boxes[i].lines.size(); ++l)
      canvas->text({c.x, c.y - b.height / 2 + 16 + kLine * static_cast<double>(l)}, g.boxes[i].lines[l],
                   Anchor::kMiddle, kLetter, kInk);
  }
  return canvas->finish();
}

}  // namespace crema
