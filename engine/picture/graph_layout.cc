#include "picture/graph_layout.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "picture/graph_places.h"

namespace crema::picture {
namespace {

constexpr double kStub = 9;                         // an arrow's last, straight part
constexpr double kSlantLeast = 8, kSlantMost = 40;  // between ranks
constexpr double kBetweenPorts = 12, kFromCorner = 8;
constexpr double kBetweenLanes = 8, kAtLanes = 12;  // of edges that lead on to the next column

// A rank's extent along the drawing, and the shift of its column.
struct Band {
  double begin = 0, end = 0, shift = 0;
  bool last = false;     // the last rank of its column,
  double columnEnd = 0;  // whose right border is here
};

class Layout {
 public:
  explicit Layout(GraphLayout& g) : g_(g), p_(rankedPlaces(g)) {
    orderRanks(p_);
    placeAcross(p_);
    portsOfAll();
    bands_.resize(p_.ranks.size());
    standAlong();
    for (size_t i = 0; i < g_.boxes.size(); ++i) {
      const Band& b = bandOf(i);
      g_.boxes[i].centre = {p_.all[i].x + b.shift, (b.begin + b.end) / 2};
    }
    for (size_t e = 0; e < g_.edges.size(); ++e) draw(e);
    crop();
  }

 private:
  const Band& bandOf(size_t place) const { return bands_[p_.all[place].rank]; }

  // Where edges touch boxes: in line with their own places where those are over the box, else near its corner.
  void portsOfAll() {
    leaves_.resize(g_.edges.size()), enters_.resize(g_.edges.size());
    std::vector<std::vector<size_t>> out(g_.boxes.size()), in(g_.boxes.size());
    for (size_t e = 0; e < g_.edges.size(); ++e) {
      out[static_cast<size_t>(g_.edges[e].from)].push_back(e);
      in[static_cast<size_t>(g_.edges[e].to)].push_back(e);
    }
    for (size_t b = 0; b < g_.boxes.size(); ++b) {
      portsOf(b, out[b], leaves_, [](const auto& route) { return route[1]; });
      portsOf(b, in[b], enters_, [](const auto& route) { return route[route.size() - 2]; });
    }
  }
  template <class Next>
  void portsOf(size_t box, std::vector<size_t>& edges, std::vector<double>& ports, Next next) {
    const auto end = [&](size_t e) -> const Place& { return p_.all[next(p_.routes[e])]; };
    std::stable_sort(edges.begin(), edges.end(), [&](size_t a, size_t b) { return end(a).position < end(b).position; });
    const double half = g_.boxes[box].width / 2 - kFromCorner, x = p_.all[box].x;
    size_t lines = 0, line = 0;
    for (size_t k = 0; k < edges.size(); ++k) lines += !k || &end(edges[k]) != &end(edges[k - 1]);
    const double apart = lines > 1 ? std::min(kBetweenPorts, 2 * half / static_cast<double>(lines - 1)) : 0;
    for (size_t k = 0; k < edges.size(); ++k) {
      if (k && &end(edges[k]) == &end(edges[k - 1])) {
        ports[edges[k]] = ports[edges[k - 1]];
        continue;
      }
      const double low = k ? ports[edges[k - 1]] + apart : x - half;
      const double high = x + half - apart * static_cast<double>(lines - 1 - line++);
      ports[edges[k]] = std::min(high, std::max(low, end(edges[k]).x));
    }
  }

  // The slanted part below a rank is as tall as its flattest line needs.
  std::vector<double> slants() const {
    std::vector<double> most(p_.ranks.size());
    for (size_t e = 0; e < g_.edges.size(); ++e) {
      const auto& route = p_.routes[e];
      for (size_t k = 1; k < route.size(); ++k) {
        const double from = k == 1 ? leaves_[e] : p_.all[route[k - 1]].x;
        const double to = k + 1 == route.size() ? enters_[e] : p_.all[route[k]].x;
        double& here = most[p_.all[route[k - 1]].rank];
        here = std::max(here, std::fabs(to - from));
      }
    }
    for (double& m : most) m = std::clamp(m * 0.15, kSlantLeast, kSlantMost);
    return most;
  }

  void standAlong() {
    const auto slant = slants();
    std::vector<double> tall(p_.ranks.size()), whole;
    double low = 1e300, high = -1e300;
    for (size_t r = 0; r < tall.size(); ++r) {
      for (const size_t i : p_.ranks[r]) {
        const Place& p = p_.all[i];
        tall[r] = std::max(tall[r], p.height);
        low = std::min(low, p.x - p.left), high = std::max(high, p.x + p.right);
      }
      whole.push_back(tall[r] + slant[r] + (r % 2 ? kStub : 0));
    }
    std::vector<size_t> ends;
    if (g_.columns) ends = columnEnds(p_, whole, high - low);
    ends.push_back(tall.size() - 1);
    double across = 0;
    for (size_t r = 0; const size_t end : ends) {
      across = standColumn(r, end, tall, whole, across);
      r = end + 1;
    }
  }
  double standColumn(size_t first, size_t last, const std::vector<double>& tall, const std::vector<double>& whole,
                     double across) {
    double along = 0, low = 1e300, high = -1e300;
    for (size_t r = first; r <= last; ++r) {
      bands_[r].begin = along, bands_[r].end = along + tall[r], along += whole[r];
      for (const size_t i : p_.ranks[r])
        low = std::min(low, p_.all[i].x - p_.all[i].left), high = std::max(high, p_.all[i].x + p_.all[i].right);
    }
    for (size_t r = first; r <= last; ++r) bands_[r].shift = across - low;
    bands_[last].last = last + 1 < tall.size();
    bands_[last].columnEnd = across + high - low;
    return bands_[last].columnEnd + 2 * kAtLanes + static_cast<double>(p_.ranks[last].size()) * kBetweenLanes;
  }

  void draw(size_t e) {
    const auto& route = p_.routes[e];
    auto& path = g_.edges[e].path;
    for (size_t k = 0; k < route.size(); ++k) {
      const Place& p = p_.all[route[k]];
      const Band& b = bandOf(route[k]);
      const bool first = k == 0, last = k + 1 == route.size();
      const double x = (first ? leaves_[e] : last ? enters_[e] : p.x) + b.shift;
      const double half = p.height / 2, middle = (b.begin + b.end) / 2;
      if (k && bandOf(route[k - 1]).last) leadOn(path, p_.all[route[k - 1]], x);
      path.push_back({x, first ? middle + half : last ? b.begin - kStub : b.begin});
      path.push_back({x, last ? middle - half : b.end});
      if (route[k] == p_.words[e]) g_.edges[e].words = {x, middle};
    }
    straighten(path);
  }
  // From the end of a column to the beginning of the next, to x there: nested, so that lines do not cross each other.
  void leadOn(std::vector<Point>& path, const Place& from, double x) const {
    const Band& b = bands_[from.rank];
    const double inside = static_cast<double>(from.position);
    const double outside = static_cast<double>(p_.ranks[from.rank].size()) - 1 - inside;
    const double end = b.end + kAtLanes + outside * kBetweenLanes,
                 lane = b.columnEnd + kAtLanes + outside * kBetweenLanes,
                 begin = -kStub - kAtLanes - inside * kBetweenLanes;
    path.insert(path.end(), {{path.back().x, end}, {lane, end}, {lane, begin}, {x, begin}});
  }
  static void straighten(std::vector<Point>& path) {
    std::vector<Point> kept;
    for (const Point& p : path) {
      if (!kept.empty() && std::hypot(kept.back().x - p.x, kept.back().y - p.y) < 0.01) continue;
      while (kept.size() > 1) {
        const Point a = kept[kept.size() - 2], b = kept.back();
        if (std::fabs((b.x - a.x) * (p.y - a.y) - (b.y - a.y) * (p.x - a.x)) > 0.01 || (b.y - a.y) * (p.y - b.y) < 0 ||
            (b.x - a.x) * (p.x - b.x) < 0)
          break;
        kept.pop_back();
      }
      kept.push_back(p);
    }
    path = std::move(kept);
  }

  void crop() {
    Point low{1e300, 1e300}, high{-1e300, -1e300};
    const auto spread = [&](double x, double y) {
      low.x = std::min(low.x, x), low.y = std::min(low.y, y), high.x = std::max(high.x, x),
      high.y = std::max(high.y, y);
    };
    for (const LaidBox& b : g_.boxes)
      for (const double side : {-0.5, 0.5}) spread(b.centre.x + side * b.width, b.centre.y + side * b.height);
    for (const LaidEdge& e : g_.edges) {
      for (const Point& p : e.path) spread(p.x, p.y);
      spread(e.words.x - e.before, e.words.y - e.tall / 2), spread(e.words.x + e.after, e.words.y + e.tall / 2);
    }
    const auto move = [&](Point& p) { p.x -= low.x, p.y -= low.y; };
    for (LaidBox& b : g_.boxes) move(b.centre);
    for (LaidEdge& e : g_.edges) {
      for (Point& p : e.path) move(p);
      move(e.words);
    }
    g_.size = {high.x - low.x, high.y - low.y};
  }

  GraphLayout& g_;
  Places p_;
  std::vector<Band> bands_;
  std::vector<double> leaves_, enters_;  // x of every edge at its ends
};

}  // namespace

void layOut(GraphLayout& graph) {
  if (!graph.boxes.empty()) Layout{graph};
}

}  // namespace crema::picture
