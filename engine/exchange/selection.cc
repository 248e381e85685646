#include "exchange/selection.h"

#include <algorithm>
#include <map>
#include <set>

namespace crema::exchange {
namespace {

class Selection {
 public:
  explicit Selection(const net::Net& net) : net_(net) {
    for (int i = 0; i < layers(); ++i) classify(i);
  }

  OnnxSelection select() {
    OnnxSelection s;
    for (const auto& name : net_.outputs()) offer(s, name, &net_.blob(name));
    for (const auto& [i, scores] : scores_)
      for (Blob* blob : scores)
        if (!read_.count(original(blob))) offer(s, names_[original(blob)], original(blob));
    if (s.outputs.empty()) invalid("the net has no scores to export: it has data and losses alone");
    follow(s);
    return s;
  }

 private:
  int layers() const { return static_cast<int>(net_.layers().size()); }
  const layers::Layer& layer(int i) const { return *net_.layers()[static_cast<size_t>(i)]; }
  Blob* original(Blob* blob) const {
    for (auto copy = copyOf_.find(blob); copy != copyOf_.end(); copy = copyOf_.find(blob)) blob = copy->second;
    return blob;
  }

  // Marks layer i as left out, or its tops as possible outputs and its bottoms as read.
  void classify(int i) {
    const layers::Blobs &bottoms = net_.bottoms(i), &tops = net_.tops(i);
    const std::string& type = layer(i).type();
    const bool probabilities = type == "SoftmaxWithLoss" && tops.size() > 1;
    const bool judges = (layer(i).isLoss() && !probabilities) || type == "Accuracy";
    if (judges) scores_[i] = scoresOf(type, bottoms);
    const bool lost = std::any_of(bottoms.begin(), bottoms.end(), [&](Blob* b) { return lost_.count(original(b)); });
    if (judges || lost || type == "Silence" || type == "HDF5Output") {
      lost_.insert(tops.begin(), tops.end());
      return;
    }
    if (probabilities) lost_.insert(tops[0]);
    for (size_t t = 0; t < tops.size(); ++t) {
      if (type == "Split") copyOf_[tops[t]] = bottoms[0];
      if (type != "Split") names_[tops[t]] = net_.topNames(i)[t];
      if (isOnnxSource(layer(i))) given_.insert(tops[t]);
    }
    for (size_t b = 0; type != "Split" && b < bottoms.size(); ++b)
      if (std::find(tops.begin(), tops.end(), bottoms[b]) == tops.end()) read_.insert(original(bottoms[b]));
  }

  // The bottoms of a loss or accuracy that are scores: the first; both of ContrastiveLoss; of EuclideanLoss the one
  // that is no input.
  layers::Blobs scoresOf(const std::string& type, const layers::Blobs& bottoms) const {
    if (type == "ContrastiveLoss") return {bottoms[0], bottoms[1]};
    return {bottoms[type == "EuclideanLoss" && given_.count(original(bottoms[0])) ? 1 : 0]};
  }

  void offer(OnnxSelection& s, const std::string& name, Blob* blob) const {
    if (lost_.count(blob) || given_.count(original(blob))) return;
    for (const OnnxPort& port : s.outputs)
      if (original(port.blob) == original(blob)) return;
    s.outputs.push_back({name, blob});
  }

  void follow(OnnxSelection& s) const {
    s.needed.assign(net_.layers().size(), false);
    std::set<const Blob*> wanted;
    for (const OnnxPort& port : s.outputs) wanted.insert(port.blob);
    for (int i = layers() - 1; i >= 0; --i) {
      const layers::Blobs &bottoms = net_.bottoms(i), &tops = net_.tops(i);
      const std::string& type = layer(i).type();
      if (scores_.count(i) || std::none_of(tops.begin(), tops.end(), [&](Blob* t) { return wanted.count(t); }))
        continue;
      s.needed[static_cast<size_t>(i)] = true;
      const size_t reads =
          // Of the other bottoms only the shape matters.
          type == "Crop" || type == "SoftmaxWithLoss" ? 1 : bottoms.size();
      wanted.insert(bottoms.begin(), bottoms.begin() + static_cast<std::ptrdiff_t>(std::min(reads, bottoms.size())));
    }
    for (int i = 0; i < layers(); ++i) {
      if (!s.needed[static_cast<size_t>(i)] && layer(i).type() != "Split") s.leftOut.push_back(layer(i).label());
      for (size_t t = 0; isOnnxSource(layer(i)) && t < net_.tops(i).size(); ++t)
        if (wanted.count(net_.tops(i)[t])) s.inputs.push_back({net_.topNames(i)[t], net_.tops(i)[t]});
    }
  }

  const net::Net& net_;
  std::map<const Blob*, Blob*> copyOf_;       // a Split's top -> its bottom
  std::map<const Blob*, std::string> names_;  // names of blobs that are no copies
  std::map<int, layers::Blobs> scores_;       // by layer: the scores that a loss or accuracy reads
  std::set<const Blob*> lost_, given_, read_;
};

}  // namespace

bool isOnnxSource(const layers::Layer& layer) {
  return layer.param().bottom_size() == 0 && layer.type() != "Parameter";
}

OnnxSelection selectForOnnx(const net::Net& net) { return Selection(net).select(); }

}  // namespace crema::exchange
