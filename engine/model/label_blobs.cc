#include "model/label_blobs.h"

#include <algorithm>
#include <set>

namespace crema::model {
namespace {

// Names in the order in which they came, each once.
struct Names {
  std::vector<std::string> list;
  std::set<std::string> known;

  void add(const std::string& name) {
    if (known.insert(name).second) list.push_back(name);
  }
  bool has(const std::string& name) const { return known.count(name) != 0; }
};

}  // namespace

bool takesRecords(const caffe::LayerParameter& layer) {
  return layer.type() == "Data" || layer.type() == "MemoryData" || layer.type() == "CoSData";
}

LabelBlobs labelBlobs(const caffe::NetParameter& filtered) {
  Names dependent, tops;
  std::set<std::string> taken;
  for (const auto& layer : filtered.layer()) {
    if (takesRecords(layer)) {
      for (int t = 1; t < layer.top_size(); ++t) dependent.add(layer.top(t));
      continue;
    }
    const auto& bottoms = layer.bottom();
    const bool labelled =
        std::any_of(bottoms.begin(), bottoms.end(), [&](const std::string& b) { return dependent.has(b); });
    for (const auto& top : layer.top()) labelled ? dependent.add(top) : tops.add(top);
    if (labelled) continue;
    for (const auto& bottom : bottoms)
      if (std::find(layer.top().begin(), layer.top().end(), bottom) == layer.top().end()) taken.insert(bottom);
  }
  LabelBlobs out;
  for (const auto& top : tops.list)
    if (!dependent.has(top) && !taken.count(top)) out.outputsWithout.push_back(top);
  out.dependent = std::move(dependent.list);
  return out;
}

}  // namespace crema::model
