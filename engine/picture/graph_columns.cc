#include <algorithm>
#include <cmath>

#include "picture/graph_places.h"

namespace crema::picture {
namespace {

constexpr double kLongest = 2400, kShape = 1.8, kBetweenColumns = 60;

}  // namespace

// Dynamic programming over column ends: minimises the sum over columns of (length / mean - 1)^2 plus a small cost for
// each edge that leads to another column.
std::vector<size_t> columnEnds(const Places& places, const std::vector<double>& heights, double breadth) {
  std::vector<double> until = {0};
  for (const double h : heights) until.push_back(until.back() + h);
  double columns = 1;
  while (until.back() / columns > std::max(kLongest, kShape * columns * (breadth + kBetweenColumns))) ++columns;
  if (columns < 2) return {};
  const double mean = until.back() / columns;
  const size_t ranks = heights.size();
  std::vector<double> cost(ranks + 1, 1e300);
  std::vector<size_t> begin(ranks + 1);
  cost[0] = 0;
  // A column is ranks [i, j): it ends after an odd rank, where every place belongs to an edge.
  for (size_t j = 2; j <= ranks + 1; j += 2) {
    const size_t end = std::min(j, ranks);
    const double leads = end == ranks ? 0 : 0.04 * std::pow(static_cast<double>(places.ranks[end - 1].size()), 2);
    for (size_t i = end == ranks ? (ranks - 1) & ~size_t{1} : j - 2;; i -= 2) {
      const double length = (until[end] - until[i]) / mean;
      const double all = cost[i] + leads + std::pow(length - 1, 2);
      if (all < cost[end]) cost[end] = all, begin[end] = i;
      if (i == 0 || length > 2) break;
    }
  }
  std::vector<size_t> ends;
  for (size_t end = begin[ranks]; end > 0; end = begin[end]) ends.push_back(end - 1);
  std::reverse(ends.begin(), ends.end());
  return ends;
}

}  // namespace crema::picture
