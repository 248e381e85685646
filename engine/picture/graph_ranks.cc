#include <algorithm>
#include <cmath>
#include <map>

#include "picture/graph_places.h"

namespace crema::picture {
namespace {

constexpr double kBesideBox = 11, kBesideLine = 6;

std::vector<size_t> ranksOf(const GraphLayout& g) {
  std::vector<size_t> rank(g.boxes.size()), first(g.boxes.size(), SIZE_MAX);
  std::vector<bool> source(g.boxes.size(), true);
  for (const LaidEdge& e : g.edges) {
    const auto from = static_cast<size_t>(e.from), to = static_cast<size_t>(e.to);
    rank[to] = std::max(rank[to], rank[from] + 2);
    source[to] = false;
  }
  // A box without incoming edges stands just above the first box that it leads to.
  for (const LaidEdge& e : g.edges) {
    const auto from = static_cast<size_t>(e.from), to = static_cast<size_t>(e.to);
    if (source[from]) first[from] = std::min(first[from], rank[to] - 2);
  }
  for (size_t b = 0; b < rank.size(); ++b)
    if (first[b] != SIZE_MAX) rank[b] = first[b];
  return rank;
}

void join(Places& p, size_t above, size_t below) {
  p.all[above].below.push_back(below);
  p.all[below].above.push_back(above);
}

// `trunk`: places of earlier edges that are drawn as the same line.
void addRoute(Places& p, std::vector<size_t>& trunk, size_t from, size_t to) {
  const size_t places = p.all[to].rank - p.all[from].rank - 1;
  while (trunk.size() < places) {
    Place line;
    line.rank = p.all[from].rank + trunk.size() + 1, line.left = line.right = kBesideLine;
    p.all.push_back(line);
    join(p, trunk.empty() ? from : trunk.back(), p.all.size() - 1);
    trunk.push_back(p.all.size() - 1);
  }
  join(p, trunk[places - 1], to);
  std::vector<size_t> route = {from};
  route.insert(route.end(), trunk.begin(), trunk.begin() + static_cast<ptrdiff_t>(places));
  route.push_back(to);
  p.routes.push_back(std::move(route));
}

// Words of a line over several ranks stand in the rank with the fewest other words, else in the middle, always before
// it branches.
size_t placeForWords(const std::vector<size_t>& route, const std::vector<double>& taken, size_t firstRank) {
  const auto middle = static_cast<double>(route.size() - 1) / 2;
  size_t best = 1;
  for (size_t k = 3; k + 1 < route.size(); k += 2) {
    const double here = taken[firstRank + k], there = taken[firstRank + best];
    if (here < there - 0.5 || (here < there + 0.5 && std::fabs(static_cast<double>(k) - middle) <
                                                         std::fabs(static_cast<double>(best) - middle)))
      best = k;
  }
  return best;
}

void addWords(Places& p, const GraphLayout& g) {
  std::map<size_t, size_t> shortest;  // trunk -> its edge
  for (size_t e = 0; e < g.edges.size(); ++e) {
    const auto at = shortest.emplace(g.edges[e].trunk, e).first;
    if (p.routes[e].size() < p.routes[at->second].size()) at->second = e;
  }
  std::vector<double> taken(p.ranks.size());
  std::map<size_t, size_t> words;
  for (const bool oneRank : {true, false})
    for (const auto& [trunk, e] : shortest) {
      const auto& route = p.routes[e];
      if ((route.size() == 3) != oneRank) continue;
      const size_t rank = p.all[route[0]].rank, at = placeForWords(route, taken, rank);
      Place& place = p.all[route[at]];
      place.left += g.edges[e].before, place.right += g.edges[e].after, place.height = g.edges[e].tall;
      taken[rank + at] += g.edges[e].before + g.edges[e].after;
      words[trunk] = route[at];
    }
  for (const LaidEdge& e : g.edges) p.words.push_back(words[e.trunk]);
}

}  // namespace

Places rankedPlaces(const GraphLayout& g) {
  Places p;
  const auto ranks = ranksOf(g);
  for (size_t b = 0; b < g.boxes.size(); ++b) {
    Place box;
    box.box = true, box.rank = ranks[b], box.height = g.boxes[b].height;
    box.left = box.right = g.boxes[b].width / 2 + kBesideBox;
    p.all.push_back(box);
  }
  std::map<size_t, std::vector<size_t>> trunks;
  for (const LaidEdge& e : g.edges)
    addRoute(p, trunks[e.trunk], static_cast<size_t>(e.from), static_cast<size_t>(e.to));
  for (size_t i = 0; i < p.all.size(); ++i) {
    if (p.ranks.size() <= p.all[i].rank) p.ranks.resize(p.all[i].rank + 1);
    p.ranks[p.all[i].rank].push_back(i);
  }
  addWords(p, g);
  return p;
}

}  // namespace crema::picture
