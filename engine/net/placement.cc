#include "net/placement.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace crema::net {

bool Placement::worthIt() const { return whole > 0 && whole <= std::numeric_limits<int>::max(); }

Placement placed(std::vector<Need> needs) {
  std::stable_sort(needs.begin(), needs.end(), [](const Need& a, const Need& b) { return a.size() > b.size(); });
  Placement p;
  for (const Need& need : needs) {
    std::vector<std::pair<int64_t, int64_t>> taken;
    for (size_t j = 0; j < p.places.size(); ++j)
      if (need.meets(needs[j])) taken.emplace_back(p.places[j], p.places[j] + needs[j].size());
    std::sort(taken.begin(), taken.end());
    int64_t at = 0;
    for (const auto& [from, to] : taken) {
      if (at + need.size() <= from) break;
      at = std::max(at, to);
    }
    p.places.push_back(at);
    p.whole = std::max(p.whole, at + need.size());
  }
  p.needs = std::move(needs);
  return p;
}

std::map<const Blob*, Blob*> memoryOwners(const Net& net) {
  std::map<const Blob*, Blob*> owners;
  for (int i = 0; i < static_cast<int>(net.layers().size()); ++i)
    for (Blob* top : net.tops(i)) owners.try_emplace(top, net.sharesMemory(i) ? owners.at(net.bottoms(i)[0]) : top);
  return owners;
}

}  // namespace crema::net
