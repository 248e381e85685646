// What layers without bottoms deliver, such as a batch of records, and who changes it.
#pragma once
#include <algorithm>
#include <map>
#include <set>

#include "net/net.h"
#include "net/placement.h"

namespace crema::net {

class Delivered {
 public:
  explicit Delivered(const Net& net) : net_(net), owners_(memoryOwners(net)) {
    for (int i = 0; i < static_cast<int>(net.layers().size()); ++i)
      for (const Blob* top : net.tops(i))
        if (net.bottoms(i).empty())
          delivered_.insert(top);
        else if (changes(i))
          changed_.insert(owners_.at(top));
  }
  // It is in place on what was delivered, and so cannot be computed anew.
  bool changes(int layer) const {
    const auto &bottoms = net_.bottoms(layer), &tops = net_.tops(layer);
    return std::any_of(tops.begin(), tops.end(), [&](const Blob* top) {
      return std::count(bottoms.begin(), bottoms.end(), top) && delivered_.count(owners_.at(top));
    });
  }
  // Of a layer without bottoms: by others; what is not finite may be theirs.
  bool isChanged(int layer) const {
    const auto& tops = net_.tops(layer);
    return net_.bottoms(layer).empty() &&
           std::any_of(tops.begin(), tops.end(), [&](const Blob* top) { return changed_.count(top) > 0; });
  }

 private:
  const Net& net_;
  const std::map<const Blob*, Blob*> owners_;
  std::set<const Blob*> delivered_, changed_;
};

}  // namespace crema::net
