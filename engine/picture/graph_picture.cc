#include "picture/graph_picture.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <sstream>

#include "base/error.h"
#include "picture/graph_layout.h"

namespace crema::picture {
namespace {

constexpr double kLetter = 9, kSmall = 7, kLine = 15, kSmallLine = 10, kFromLine = 4;
constexpr double kBetweenArrows = 12;
constexpr int kMany = 16;
constexpr double kMargin = 20, kTitle = 12, kTitleHeight = 30;
constexpr Colour kArrow{90, 90, 90}, kInk{20, 20, 20};

bool sideways(const Graph& g) { return g.direction == "LR" || g.direction == "RL"; }

std::vector<std::string> linesOf(const std::string& words) {
  std::vector<std::string> lines;
  std::istringstream in(words);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

Point sizeOf(const std::vector<std::string>& lines, double letter, double line) {
  double wide = 0;
  for (const auto& l : lines) wide = std::max(wide, Canvas::textWidth(l, letter));
  return {wide, line * static_cast<double>(lines.size())};
}

// Edges from one box with the same words are one line that branches; lines are numbered in order of appearance.
std::vector<size_t> trunksOf(const Graph& g) {
  std::map<std::pair<int, std::string>, size_t> numbers;
  std::vector<size_t> all;
  for (const GraphEdge& e : g.edges)
    all.push_back(numbers.emplace(std::pair{e.from, e.words}, numbers.size()).first->second);
  return all;
}

// The width of each box that its arrows need side by side, up to a limit.
std::vector<double> arrowsAcross(const Graph& g, const std::vector<size_t>& trunks) {
  std::vector<int> in(g.boxes.size()), out(g.boxes.size());
  size_t next = 0;
  for (size_t e = 0; e < g.edges.size(); ++e) {
    ++in[static_cast<size_t>(g.edges[e].to)];
    if (trunks[e] == next) ++out[static_cast<size_t>(g.edges[e].from)], ++next;
  }
  std::vector<double> across;
  for (size_t b = 0; b < in.size(); ++b)
    across.push_back(kBetweenArrows * (1 + std::min(kMany, std::max(in[b], out[b]))));
  return across;
}

// Layouts run downwards, with words to the right of lines; other directions are turned or mirrored, with words above
// lines that run sideways.
GraphLayout laid(const Graph& g) {
  GraphLayout out;
  out.columns = sideways(g);
  const auto trunks = trunksOf(g);
  const auto across = arrowsAcross(g, trunks);
  for (const GraphBox& b : g.boxes) {
    const Point size = sizeOf(b.lines, kLetter, kLine);
    LaidBox box{size.x + 20, size.y + 10, {}};
    if (sideways(g)) std::swap(box.width, box.height);
    box.width = std::max(box.width, across[out.boxes.size()]);
    out.boxes.push_back(box);
  }
  for (const GraphEdge& e : g.edges) {
    LaidEdge edge;
    edge.from = e.from, edge.to = e.to, edge.trunk = trunks[out.edges.size()];
    if (!e.words.empty()) {
      const Point size = sizeOf(linesOf(e.words), kSmall, kSmallLine);
      (sideways(g) ? edge.before : edge.after) = kFromLine + (sideways(g) ? size.y : size.x);
      edge.tall = sideways(g) ? size.x + 2 * kFromLine : size.y;
    }
    out.edges.push_back(edge);
  }
  layOut(out);
  const bool back = g.direction == "BT" || g.direction == "RL";
  const auto turn = [&](Point& p) {
    if (back) p.y = out.size.y - p.y;
    if (sideways(g)) std::swap(p.x, p.y);
    p.x += kMargin, p.y += kMargin + kTitleHeight;
  };
  for (LaidBox& b : out.boxes) {
    turn(b.centre);
    if (sideways(g)) std::swap(b.width, b.height);
  }
  for (LaidEdge& e : out.edges) {
    turn(e.words);
    for (Point& p : e.path) turn(p);
  }
  if (sideways(g)) std::swap(out.size.x, out.size.y);
  return out;
}

void arrow(Canvas& canvas, const std::vector<Point>& path) {
  canvas.line(path, kArrow, 1.2);
  const Point end = path.back(), before = path[path.size() - 2];
  const double dx = end.x - before.x, dy = end.y - before.y, length = std::max(1e-9, std::hypot(dx, dy));
  const double ux = dx / length, uy = dy / length;
  canvas.line(
      {{end.x - 7 * ux + 4 * uy, end.y - 7 * uy - 4 * ux}, end, {end.x - 7 * ux - 4 * uy, end.y - 7 * uy + 4 * ux}},
      kArrow, 1.2);
}

void words(Canvas& canvas, const std::string& all, Point at, bool above) {
  const auto lines = linesOf(all);
  const auto count = static_cast<double>(lines.size());
  for (size_t l = 0; l < lines.size(); ++l) {
    const double from = static_cast<double>(l) * kSmallLine;
    if (above)
      canvas.text({at.x, at.y - kFromLine - 1 - count * kSmallLine + from + kSmallLine}, lines[l], Anchor::kMiddle,
                  kSmall, kArrow);
    else
      canvas.text({at.x + kFromLine, at.y + kSmallLine * (0.75 - count / 2) + from}, lines[l], Anchor::kStart, kSmall,
                  kArrow);
  }
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
  const double width = std::max(layout.size.x, Canvas::textWidth(g.title, kTitle));
  const auto canvas = canvasFor(path, width + 2 * kMargin, layout.size.y + 2 * kMargin + kTitleHeight);
  canvas->text({kMargin, kMargin + kTitle}, g.title, Anchor::kStart, kTitle, kInk);
  for (const LaidEdge& e : layout.edges) arrow(*canvas, e.path);
  for (size_t e = 0, trunk = 0; e < g.edges.size(); ++e)
    if (layout.edges[e].trunk == trunk) words(*canvas, g.edges[e].words, layout.edges[e].words, sideways(g)), ++trunk;
  for (size_t i = 0; i < g.boxes.size(); ++i) {
    const LaidBox& b = layout.boxes[i];
    const Point corner{b.centre.x - b.width / 2, b.centre.y - b.height / 2};
    const double first = b.centre.y + 11 - kLine * static_cast<double>(g.boxes[i].lines.size()) / 2;
    canvas->box(corner, {b.width, b.height}, g.boxes[i].fill, kArrow);
    for (size_t l = 0; l < g.boxes[i].lines.size(); ++l)
      canvas->text({b.centre.x, first + kLine * static_cast<double>(l)}, g.boxes[i].lines[l], Anchor::kMiddle, kLetter,
                   kInk);
  }
  return canvas->finish();
}

}  // namespace crema::picture
