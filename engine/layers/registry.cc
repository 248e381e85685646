#include "layers/registry.h"

#include "base/nearest.h"
#include "base/text.h"

namespace crema::layers {

void LayerRegistry::add(const std::string& type, std::string summary, Maker make, TopMemory memory) {
  if (!entries_.emplace(type, Entry{std::move(make), std::move(summary), memory}).second)
    internal("layer type {} is registered twice", type);
}

void LayerRegistry::replace(const std::string& type, Maker make) {
  const auto found = entries_.find(type);
  if (found == entries_.end()) internal("layer type {} is not registered", type);
  found->second.make = std::move(make);
}

bool LayerRegistry::sharesMemory(const std::string& type) const {
  const auto found = entries_.find(type);
  return found != entries_.end() && found->second.memory == TopMemory::kOfBottom;
}

std::unique_ptr<Layer> LayerRegistry::make(const caffe::LayerParameter& param, const LayerContext& context) const {
  const auto found = entries_.find(param.type());
  if (found != entries_.end()) return found->second.make(param, context);
  std::vector<std::string> known;
  for (const auto& [type, entry] : entries_) known.push_back(type);
  invalid("Unknown layer type: {} (known types: {}){}", param.type().empty() ? "(none given)" : param.type(),
          joined(known), didYouMean(param.type(), known));
}

}  // namespace crema::layers
