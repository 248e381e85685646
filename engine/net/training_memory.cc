#include "net/training_memory.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace crema::net {
namespace {

// Layers with the moments of their passes.
class Moments {
 public:
  explicit Moments(const std::vector<int>& by) : by_(by), count_(static_cast<int>(by.size())) {}
  int count() const { return count_; }
  int forward(int layer) const { return by_[static_cast<size_t>(layer)]; }
  int backward(int layer) const { return 2 * count_ - 1 - by_[static_cast<size_t>(layer)]; }
  int update() const { return 2 * count_; }

 private:
  const std::vector<int>& by_;
  int count_;
};

const layers::Layer& layerOf(const Net& net, int i) { return *net.layers()[static_cast<size_t>(i)]; }
bool mayKeepAnything(const Net& net, int i) { return layerOf(net, i).type() == "Python"; }

}  // namespace

std::vector<Need> valueNeeds(const Net& net, const std::vector<int>& by, bool allGoBack, const std::set<int>& deferred,
                             const std::set<int>& stopped) {
  const Moments moments(by);
  std::vector<Need> all;
  const auto owners = memoryOwners(net);
  std::map<const Blob*, size_t> known;  // indexes in `all`, by owners of memory
  const auto at = [&](const Blob* blob) { return known.at(owners.at(blob)); };
  std::set<size_t> apart;
  for (int i = 0; i < moments.count(); ++i) {
    const auto &bottoms = net.bottoms(i), &tops = net.tops(i);
    for (size_t t = 0; t < tops.size(); ++t) {
      Blob* owner = owners.at(tops[t]);
      if (known.try_emplace(owner, all.size()).second) all.push_back({owner, moments.forward(i), i});
      if (bottoms.empty() || layerOf(net, i).lossWeight(static_cast<int>(t)) != 0) apart.insert(at(tops[t]));
    }
    const auto reads = layerOf(net, i).readsBackward();
    const bool goesBack = (allGoBack || net.needsBackward(i)) && !stopped.count(i);
    for (const auto& [blobs, isRead] : {std::pair(&bottoms, reads.bottoms), std::pair(&tops, reads.tops)})
      for (const Blob* b : *blobs) {
        Need& need = all[at(b)];
        need.to = std::max(need.to, isRead && goesBack ? moments.backward(i) : moments.forward(i));
        if (mayKeepAnything(net, i)) apart.insert(at(b));
      }
  }
  for (const int i : deferred) all[at(net.bottoms(i)[0])].to = moments.update();
  for (const auto& name : net.outputs()) apart.insert(at(&net.blob(name)));
  std::vector<Need> shared;
  for (size_t i = 0; i < all.size(); ++i)
    if (!apart.count(i)) shared.push_back(all[i]);
  return shared;
}

std::vector<Need> gradientNeeds(const Net& net, const std::vector<int>& by, const std::set<int>& deferred) {
  const Moments moments(by);
  std::map<const Blob*, int> made;      // when the layer that made it goes backward
  std::map<const Blob*, Need> written;  // by a layer that reads the blob
  std::set<const Blob*> apart, open;
  for (int i = 0; i < moments.count(); ++i) {
    const auto &bottoms = net.bottoms(i), &tops = net.tops(i);
    for (size_t t = 0; t < tops.size(); ++t) {
      made.try_emplace(tops[t], moments.backward(i));  // which reads the gradients of a Split behind it
      for (Blob* b : bottoms)
        if (b != tops[t] && b->sharesDiff(*tops[t])) apart.insert({b, tops[t]});
      if (layerOf(net, i).lossWeight(static_cast<int>(t)) != 0 || mayKeepAnything(net, i)) apart.insert(tops[t]);
    }
    for (size_t b = 0; b < bottoms.size(); ++b) {
      if (mayKeepAnything(net, i)) apart.insert(bottoms[b]);
      if (!net.needsBackward(i) || !net.propagateDown(i)[b]) continue;
      const int begin = 2 * moments.count() - 1 - i;
      written.try_emplace(bottoms[b], Need{bottoms[b], begin, made.at(bottoms[b]), true}).first->second.from = begin;
      // Behind a last layer in place nobody computes the gradient, which starts as what is there.
      if (std::count(tops.begin(), tops.end(), bottoms[b]))
        open.insert(bottoms[b]);
      else
        open.erase(bottoms[b]);
    }
  }
  for (const int i : deferred)
    if (const auto at = written.find(net.tops(i)[0]); at != written.end()) at->second.to = moments.update();
  std::vector<Need> needs;
  for (const auto& [blob, need] : written)
    if (!apart.count(blob) && !open.count(blob)) needs.push_back(need);
  std::sort(needs.begin(), needs.end(), [](const Need& a, const Need& b) { return a.to > b.to; });
  return needs;
}

}  // namespace crema::net
