#include "model/splits.h"

#include <map>
#include <string>
#include <utility>

#include "base/error.h"

namespace crema::model {
namespace {

using Top = std::pair<int, int>;  // layer, index of the top

struct Uses {
  std::map<std::pair<int, int>, Top> sourceOfBottom;  // (layer, bottom) -> the top it reads
  std::map<Top, int> readers;
  std::map<Top, float> lossWeight;
};

Uses count(const caffe::NetParameter& net) {
  Uses uses;
  std::map<std::string, Top> writer;
  for (int i = 0; i < net.layer_size(); ++i) {
    const auto& layer = net.layer(i);
    for (int j = 0; j < layer.bottom_size(); ++j) {
      const auto found = writer.find(layer.bottom(j));
      if (found == writer.end()) {
        std::string known;
        for (const auto& [name, top] : writer) known += (known.empty() ? "" : ", ") + name;
        invalid("Unknown bottom blob '{}' (layer '{}', bottom index {}); blobs made before it: {}", layer.bottom(j),
                layer.name(), j, known.empty() ? "none" : known);
      }
      uses.sourceOfBottom[{i, j}] = found->second;
      ++uses.readers[found->second];
    }
    for (int j = 0; j < layer.top_size(); ++j) writer[layer.top(j)] = {i, j};
    for (int j = 0; j < std::min(layer.loss_weight_size(), layer.top_size()); ++j) {
      const Top top = writer[layer.top(j)];
      uses.lossWeight[top] = layer.loss_weight(j);
      if (layer.loss_weight(j) != 0) ++uses.readers[top];
    }
  }
  return uses;
}

std::string layerName(const std::string& blob, const std::string& layer, int top) {
  return fmt::format("{}_{}_{}_split", blob, layer, top);
}
std::string topName(const std::string& blob, const std::string& layer, int top, int k) {
  return fmt::format("{}_{}", layerName(blob, layer, top), k);
}

void addSplit(const caffe::LayerParameter& from, int top, int readers, float lossWeight, caffe::LayerParameter* split) {
  split->set_name(layerName(from.top(top), from.name(), top));
  split->set_type("Split");
  split->add_bottom(from.top(top));
  for (int k = 0; k < readers; ++k) {
    split->add_top(topName(from.top(top), from.name(), top, k));
    if (lossWeight != 0) split->add_loss_weight(k == 0 ? lossWeight : 0);
  }
}

}  // namespace

caffe::NetParameter insertSplits(const caffe::NetParameter& net) {
  const Uses uses = count(net);
  const auto readers = [&](const Top& t) {
    const auto f = uses.readers.find(t);
    return f == uses.readers.end() ? 0 : f->second;
  };
  const auto weight = [&](const Top& t) {
    const auto f = uses.lossWeight.find(t);
    return f == uses.lossWeight.end() ? 0.f : f->second;
  };
  std::map<Top, int> next;  // which Split top the next reader takes
  caffe::NetParameter out = net;
  out.clear_layer();
  for (int i = 0; i < net.layer_size(); ++i) {
    auto* layer = out.add_layer();
    *layer = net.layer(i);
    for (int j = 0; j < layer->bottom_size(); ++j) {
      const Top source = uses.sourceOfBottom.at({i, j});
      if (readers(source) < 2) continue;
      if (!next.count(source)) next[source] = weight(source) != 0 ? 1 : 0;
      const auto& from = net.layer(source.first);
      layer->set_bottom(j, topName(from.top(source.second), from.name(), source.second, next[source]++));
    }
    for (int j = 0; j < net.layer(i).top_size(); ++j)  // the weight moves to the Split
      if (readers({i, j}) > 1 && weight({i, j}) != 0) layer->set_loss_weight(j, 0);
    for (int j = 0; j < net.layer(i).top_size(); ++j)
      if (readers({i, j}) > 1) addSplit(net.layer(i), j, readers({i, j}), weight({i, j}), out.add_layer());
  }
  return out;
}

}  // namespace crema::model
