// Builder of an ONNX graph, and one layer's view of it.
//
// ONNX has no layers in place: every value is assigned once and has a name of its own. The last layer that writes a
// blob gives its value the blob's name, an earlier one "blob/layer"; values inside a layer are "layer/Operator".
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

// Until fillWeights() the graph refers to blobs for weights, so that building two graphs of one net copies none.
class OnnxGraph {
 public:
  std::string unique(const std::string& base);  // `base`, with a number appended if it is taken
  Value weights(const Blob& blob, const std::vector<int64_t>& dims, const std::string& base);
  Value floats(const std::vector<int64_t>& dims, const std::vector<float>& numbers, const std::string& base);
  Value ints(const std::vector<int64_t>& numbers, const std::string& base);
  int64_t weightBytes() const;
  void fillWeights();

  ::onnx::GraphProto proto;
  std::map<const Blob*, Value> values;                     // blob -> its current value
  std::map<const Blob*, const layers::Layer*> lastWriter;  // blob -> the last layer that makes a node and writes it

 private:
  ::onnx::TensorProto* tensor(const std::vector<int64_t>& dims, const std::string& base);
  std::set<std::string> names_;
  // By address: shared parameters are stored once.
  std::map<std::pair<const void*, std::vector<int64_t>>, Value> known_;
  // Index of an initializer -> the blob with its values.
  std::map<int, const Blob*> pending_;
};

// The interface of a layer's conversion, which adds nodes and then sets the value of every top.
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
  Value weight(size_t param, const std::vector<int64_t>& dims);  // a parameter with another shape
  Value number(double value) { return floats({}, {static_cast<float>(value)}); }
  Value floats(const std::vector<int64_t>& dims, const std::vector<float>& numbers);
  Value ints(const std::vector<int64_t>& numbers);

  Value node(const char* op, const std::vector<Value>& inputs, const OnnxAttributes& attributes = {});
  std::vector<Value> nodes(const char* op, size_t outputs, const std::vector<Value>& inputs,
                           const OnnxAttributes& attributes = {});
  Value reshaped(const Value& value, std::vector<int64_t> dims);  // the first axis is -1, so that any batch fits
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
