#include "picture/graph_layout.h"

#include <algorithm>
#include <numeric>

namespace crema {
namespace {

constexpr double kAside = 24, kBetween = 46, kMargin = 20;

// A box, or where an edge passes a rank.
struct Place {
  int rank = 0;
  double width = 10, height = 0, x = 0, y = 0, wish = 0;
  std::vector<size_t> above, below;
};

class Layout {
 public:
  explicit Layout(GraphLayout& g) : graph_(g) {
    for (const auto& b : g.boxes) {
      Place p;
      p.width = b.width, p.height = b.height;
      places_.push_back(p);
    }
    for (const auto& e : g.edges) {
      auto& to = places_[static_cast<size_t>(e.to)];
      to.rank = std::max(to.rank, places_[static_cast<size_t>(e.from)].rank + 1);
    }
    for (int i = static_cast<int>(g.boxes.size()) - 1; i >= 0; --i) lower(i);
    for (const auto& e : g.edges) join(e);
    for (size_t i = 0; i < places_.size(); ++i) {
      const auto rank = static_cast<size_t>(places_[i].rank);
      if (ranks_.size() <= rank) ranks_.resize(rank + 1);
      ranks_[rank].push_back(i);
    }
    for (auto& r : ranks_) pack(r);
    for (int sweep = 0; sweep < 12; ++sweep) {
      for (auto& r : ranks_) settle(r, &Place::above);
      for (auto r = ranks_.rbegin(); r != ranks_.rend(); ++r) settle(*r, &Place::below);
    }
  }

  void write() {
    double low = 1e300, high = -1e300, y = kMargin;
    for (auto& r : ranks_) {
      double tall = 0;
      for (const size_t i : r) tall = std::max(tall, places_[i].height);
      for (const size_t i : r) {
        Place& p = places_[i];
        p.y = y + tall / 2;
        if (i >= graph_.boxes.size()) p.height = tall;
        low = std::min(low, p.x - p.width / 2), high = std::max(high, p.x + p.width / 2);
      }
      y += tall + kBetween;
    }
    for (auto& p : places_) p.x += kMargin - low;
    for (size_t i = 0; i < graph_.boxes.size(); ++i) graph_.boxes[i].centre = {places_[i].x, places_[i].y};
    for (size_t e = 0; e < graph_.edges.size(); ++e)
      for (const size_t i : routes_[e]) {
        const double half = places_[i].height / 2;
        if (i != routes_[e].front()) graph_.edges[e].path.push_back({places_[i].x, places_[i].y - half});
        if (i != routes_[e].back()) graph_.edges[e].path.push_back({places_[i].x, places_[i].y + half});
      }
    graph_.size = {high - low + 2 * kMargin, y - kBetween + kMargin};
  }

 private:
  // What hangs on nothing stands just above the first box that hangs on it.
  void lower(int box) {
    int first = -1;
    for (const auto& e : graph_.edges) {
      if (e.to == box) return;
      const int below = places_[static_cast<size_t>(e.to)].rank;
      if (e.from == box && (first < 0 || below < first)) first = below;
    }
    if (first > 0) places_[static_cast<size_t>(box)].rank = first - 1;
  }
  void join(const LaidEdge& e) {
    std::vector<size_t> route = {static_cast<size_t>(e.from)};
    for (int rank = places_[route[0]].rank + 1; rank < places_[static_cast<size_t>(e.to)].rank; ++rank) {
      Place p;
      p.rank = rank;
      route.push_back(places_.size());
      places_.push_back(p);
    }
    route.push_back(static_cast<size_t>(e.to));
    for (size_t k = 1; k < route.size(); ++k) {
      places_[route[k]].above.push_back(route[k - 1]);
      places_[route[k - 1]].below.push_back(route[k]);
    }
    routes_.push_back(std::move(route));
  }
  // Side by side in the present order, the sum of squared distances from what each wishes as small as it can be: those
  // that would overlap become a block around the mean of their wishes (pool adjacent violators).
  void pack(const std::vector<size_t>& rank) {
    struct Block {
      double sum = 0;
      size_t count = 0;
      double mean() const { return sum / static_cast<double>(count); }
    };
    std::vector<Block> blocks;
    std::vector<double> offsets;
    for (size_t k = 0; k < rank.size(); ++k) {
      const double gap = k ? (places_[rank[k - 1]].width + places_[rank[k]].width) / 2 + kAside : 0;
      offsets.push_back((k ? offsets.back() : 0) + gap);
      blocks.push_back({places_[rank[k]].wish - offsets[k], 1});
      while (blocks.size() > 1 && blocks[blocks.size() - 2].mean() > blocks.back().mean()) {
        Block& before = blocks[blocks.size() - 2];
        before.sum += blocks.back().sum, before.count += blocks.back().count;
        blocks.pop_back();
      }
    }
    size_t k = 0;
    for (const Block& b : blocks)
      for (size_t i = 0; i < b.count; ++i, ++k) places_[rank[k]].x = b.mean() + offsets[k];
  }
  void settle(std::vector<size_t>& rank, std::vector<size_t> Place::*near) {
    for (const size_t i : rank) {
      Place& p = places_[i];
      const auto& around = p.*near;
      p.wish = p.x;
      if (!around.empty())
        p.wish =
            std::accumulate(around.begin(), around.end(), 0.0, [&](double s, size_t n) { return s + places_[n].x; }) /
            static_cast<double>(around.size());
    }
    std::stable_sort(rank.begin(), rank.end(), [&](size_t a, size_t b) { return places_[a].wish < places_[b].wish; });
    pack(rank);
  }

  GraphLayout& graph_;
  std::vector<Place> places_;
  std::vector<std::vector<size_t>> ranks_, routes_;
};

}  // namespace

void layOut(GraphLayout& graph) {
  if (!graph.boxes.empty()) Layout(graph).write();
}

}  // namespace crema
