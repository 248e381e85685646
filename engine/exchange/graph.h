// An ONNX graph in the making, and one layer's view of it.
//
// ONNX knows no work in place: every value is made once and has a name of its own. The last layer that writes a blob
// gives its value the blob's name, an earlier one "blob/layer"; values inside a layer are "layer/Operator".
#pragma once
#include <map>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "layers/layer.h"
#include "onnx.pb.h"

namespace crema::exchange {

using Value = std::string;  // the name of one

struct OnnxAttribute {
  const char* name;
  std::variant<int64_t, float, std::vector<int64_t>> value;
};
using OnnxAttributes = std::vector<OnnxAttribute>;

// Weights are kept as the blobs that hold them until fillWeights(): two graphs of one net cost no copy of them.
class OnnxGraph {
 public:
  std::string unique(const std::string& wish);  // the wish, or with a number behind it
  Value weights(const Blob& blob, const std::vector<int64_t>& dims, const std::string& wish);
  Value floats(const std::vector<int64_t>& dims, const std::vector<float>& values, const std::string& wish);
  Value ints(const std::vector<int64_t>& values, const std::string& wish);
  int64_t weightBytes() const;
  void fillWeights();

  ::onnx::GraphProto proto;
  std::map<const Blob*, Value> values;                     // what a blob holds after the layers so far
  std::map<const Blob*, const layers::Layer*> lastWriter;  // of those that make a node

 private:
  ::onnx::TensorProto* tensor(const std::vector<int64_t>& dims, const std::string& wish);
  std::set<std::string> names_;
  std::map<std::pair<const void*, std::vector<int64_t>>, Value> known_;  // by memory: shared parameters are stored once
  std::map<int, const Blob*> pending_;                                   // number of an initializer -> its values
};

// What a layer's conversion works with. It makes nodes, then says for every top which value it is.
class OnnxLayer {
 public:
  OnnxLayer(OnnxGraph& graph, const layers::Layer& layer, const layers::Blobs& bottoms, const layers::Blobs& tops)
      : graph_(graph), layer_(layer), bottoms_(bottoms), tops_(tops), firstNode_(graph.proto.node_size()) {}

  const caffe::LayerParameter& param() const { return layer_.param(); }
  size_t bottoms() const { return bottoms_.size(); }
  size_t tops() const { return tops_.size(); }
  size_t params() const { return layer_.params().size(); }
  const Shape& in(size_t i = 0) const { return bottoms_[i]->shape(); }
  const Shape& out(size_t i = 0) const { return tops_[i]->shape(); }
  const Blob& blob(size_t param) const { return *layer_.params()[param]; }

  Value bottom(size_t i = 0) const { return graph_.values.at(bottoms_[i]); }
  Value weight(size_t param) {
    return weight(param, {blob(param).shape().dims().begin(), blob(param).shape().dims().end()});
  }
  Value weight(size_t param, const std::vector<int64_t>& dims);  // the same values in another shape
  Value number(double value) { return floats({}, {static_cast<float>(value)}); }
  Value floats(const std::vector<int64_t>& dims, const std::vector<float>& values);
  Value ints(const std::vector<int64_t>& values);

  Value node(const char* op, const std::vector<Value>& inputs, const OnnxAttributes& attributes = {});
  std::vector<Value> nodes(const char* op, size_t outputs, const std::vector<Value>& inputs,
                           const OnnxAttributes& attributes = {});
  Value reshaped(const Value& value, std::vector<int64_t> dims);  // the first axis takes what is left: any batch
  Value shapedAs(const Shape& to, const Value& value) { return reshaped(value, {to.dims().begin(), to.dims().end()}); }
  void top(size_t i, const Value& value);
  void top(const Value& value) { top(0, value); }

  template <class... A>
  [[noreturn]] void refuse(fmt::format_string<A...> why, A&&... args) const {
    invalid("{} cannot be exported to ONNX: {}", layer_.label(), fmt::format(why, std::forward<A>(args)...));
  }

 private:
  OnnxGraph& graph_;
  const layers::Layer& layer_;
  const layers::Blobs &bottoms_, &tops_;
  const int firstNode_;
};

using OnnxConversion = void (*)(OnnxLayer&);
using OnnxConversions = std::map<std::string, OnnxConversion>;  // by layer type

void addOnnxActivations(OnnxConversions&);
void addOnnxNormalisations(OnnxConversions&);
void addOnnxPooling(OnnxConversions&);
void addOnnxRecurrent(OnnxConversions&);
void addOnnxShapes(OnnxConversions&);
void addOnnxWeighted(OnnxConversions&);

}  // namespace crema::exchange
