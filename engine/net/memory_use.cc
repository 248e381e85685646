#include "net/memory_use.h"

#include <list>
#include <map>
#include <string>

namespace crema::net {
namespace {

class Analysis {
 public:
  Analysis(const caffe::NetParameter& net, const layers::LayerRegistry& registry)
      : net_(net), registry_(registry), uses_(static_cast<size_t>(net.layer_size())) {
    for (int i = 0; i < net.layer_size(); ++i) walk(i);
    for (const Access& write : writes_) follow(write);
  }
  std::vector<layers::MemoryUse> take() { return std::move(uses_); }

 private:
  struct Made {  // a blob that a layer made, apart from its bottoms' names
    int layer, top, memory;
    const Made* below;  // the blob whose memory it shares
  };
  struct Access {
    int layer;
    const Made* blob;
  };

  void walk(int i) {
    const auto& layer = net_.layer(i);
    const Made* first = nullptr;
    for (int j = 0; j < layer.bottom_size(); ++j) {
      const auto found = present_.find(layer.bottom(j));
      if (found == present_.end()) continue;  // the builder reports an unknown bottom
      if (j == 0) first = found->second;
      const bool inPlace = j < layer.top_size() && layer.top(j) == layer.bottom(j);
      if (!registry_.sharesMemory(layer.type())) (inPlace ? writes_ : reads_).push_back({i, found->second});
    }
    for (int j = 0; j < layer.top_size(); ++j) {
      if (j < layer.bottom_size() && layer.top(j) == layer.bottom(j)) continue;
      const Made* below = registry_.sharesMemory(layer.type()) ? first : nullptr;
      const auto made = all_.insert(all_.end(), {i, j, below ? below->memory : static_cast<int>(all_.size()), below});
      present_[layer.top(j)] = &*made;
    }
  }

  void follow(const Access& write) {
    const std::string& type = net_.layer(write.layer).type();
    const auto here = [&](const Made* blob) { return blob->memory == write.blob->memory; };
    for (const Made& m : all_)
      if (here(&m) && !m.below) uses_[static_cast<size_t>(m.layer)].overwriters.insert(type);
    for (const Access& before : writes_)
      if (before.layer < write.layer && here(before.blob))
        uses_[static_cast<size_t>(before.layer)].overwriters.insert(type);
    for (const Access& read : reads_)
      if (read.layer <= write.layer && here(read.blob) && read.blob != write.blob) setApart(read.blob);
  }

  void setApart(const Made* blob) {
    while (blob && net_.layer(blob->layer).type() != "Split") blob = blob->below;
    if (blob) uses_[static_cast<size_t>(blob->layer)].ownTops.insert(blob->top);
  }

  const caffe::NetParameter& net_;
  const layers::LayerRegistry& registry_;
  std::vector<layers::MemoryUse> uses_;
  std::list<Made> all_;  // a list, so that pointers to elements stay valid
  std::map<std::string, const Made*> present_;
  std::vector<Access> reads_, writes_;
};

}  // namespace

std::vector<layers::MemoryUse> memoryUse(const caffe::NetParameter& withSplits, const layers::LayerRegistry& registry) {
  return Analysis(withSplits, registry).take();
}

}  // namespace crema::net
