// Builds a net from its description; private to net/.
#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

#include "net/net.h"

namespace crema::net {

class Net::Builder {
 public:
  Builder(Net& net, const caffe::NetParameter& description, const caffe::NetState& state);
  void build();

 private:
  const layers::LayerRegistry& registry() const;
  layers::LayerContext contextOf(const caffe::LayerParameter& param);  // for the next layer
  void addLayer(const caffe::LayerParameter& param);
  bool connectBottoms(const caffe::LayerParameter& param, Wire& wire);  // true when a bottom needs backward
  void connectTops(const caffe::LayerParameter& param, const layers::Layer& layer, Wire& wire);
  void addParams(layers::Layer& layer);
  void shareParam(layers::Layer& layer, int param, const caffe::ParamSpec& spec, size_t owner);
  void pruneBackward();
  void findOutputs();
  void placeParams();
  void logLayer(const layers::Layer& layer, const Wire& wire);

  struct Share {
    layers::Layer* layer;
    int param;
    size_t owner;
  };
  Net& net_;
  caffe::NetParameter param_;
  caffe::NetState state_;
  std::vector<layers::MemoryUse> memory_;  // of each layer
  std::set<std::string> available_;        // blobs that no layer has read yet
  std::map<std::string, bool> blobBackward_;
  std::map<std::string, size_t> paramByName_;  // index in learnables_
  std::map<size_t, caffe::ParamSpec> ownerSpec_;
  std::vector<Share> shares_;
  std::vector<bool> mayBackward_;
  std::set<std::string> named_;              // layers with parameters
  std::map<std::string, int> layersOfName_;  // layers so far of each name
  int64_t topBytes_ = 0;                     // so far, as Caffe counts: in-place tops too
};

}  // namespace crema::net
