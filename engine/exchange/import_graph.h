// Builder of a net from an ONNX graph, and one node's view of it.
//
// A value of the graph is a constant (an initializer, or computed from those and from shapes: import_constants.cc) or a
// blob, whose shape is known, as each layer is set up on the shapes below it when it is added. A blob has its value's
// name.
#pragma once
#include <deque>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "exchange/import.h"
#include "exchange/tensors.h"
#include "kernels/kernels.h"

namespace crema::exchange {

class ImportGraph {
 public:
  struct Known {
    const ::onnx::TensorProto* constant = nullptr;
    std::string blob;  // used where there is no constant
  };
  ImportGraph();

  // Adds a layer; the names of its tops are taken as they are. Shapes of the tops follow.
  void add(caffe::LayerParameter layer);
  std::string uniqueLayer(const std::string& base);
  std::string uniqueBlob(const std::string& base);
  const ::onnx::TensorProto* keep(::onnx::TensorProto constant);
  size_t readers(const std::string& value) const;  // nodes and outputs of the graph

  caffe::NetParameter net;
  std::vector<std::string> notes;
  int64_t opset = 0;
  std::map<std::string, Known> values;
  std::map<std::string, Dims> shapes;                                      // of blobs
  std::map<std::string, int> types;                                        // of values that are blobs, in ONNX
  std::map<std::string, std::vector<const ::onnx::NodeProto*>> readersOf;  // nodes, by value
  std::set<std::string> flattened;  // values that a Gemm alone reads: all axes behind the first are one
  std::set<std::string> outputs;
  std::set<const ::onnx::NodeProto*> done;  // nodes that an earlier one has converted along with itself

 private:
  kernels::Context kernels_;
  std::deque<::onnx::TensorProto> kept_;
  std::set<std::string> layers_, blobs_;
};

class ImportNode {
 public:
  ImportNode(ImportGraph& graph, const ::onnx::NodeProto& node);

  ImportGraph& graph() { return graph_; }
  const ::onnx::NodeProto& proto() const { return node_; }
  const std::string& op() const { return node_.op_type(); }
  int inputs() const { return node_.input_size(); }
  bool has(int i) const { return i < node_.input_size() && !node_.input(i).empty(); }
  void note(const std::string& text);  // added once, however many nodes it is true of
  bool constant(int i) const;
  const ::onnx::TensorProto& tensor(int i) const;  // kInvalid for a blob
  std::vector<float> floats(int i) const { return floatsOf(tensor(i)); }
  float number(int i) const;  // the value of a constant with one element
  std::vector<int64_t> ints(int i) const { return intsOf(tensor(i)); }
  std::string blob(int i = 0) const;  // kInvalid for a constant
  const Dims& shape(const std::string& blob) const { return graph_.shapes.at(blob); }
  const Dims& in(int i = 0) const { return shape(blob(i)); }
  int type(int i = 0) const;  // ONNX's type; a blob holds integers as floats
  void refuseWhole() const;   // kInvalid for integers, where ONNX rounds and a layer does not

  const ::onnx::AttributeProto* attribute(const char* name) const;
  int64_t i(const char* name, int64_t otherwise) const;
  float f(const char* name, float otherwise) const;
  std::string s(const char* name, const char* otherwise) const;
  std::vector<int64_t> list(const char* name, std::vector<int64_t> otherwise = {}) const;
  // An attribute in older opsets, an input in newer ones.
  std::vector<int64_t> listOrInput(const char* name, int input) const;
  int64_t axis(int64_t given, size_t axes) const;  // counted from 0; throws when out of range

  caffe::LayerParameter layer(const char* type, const std::vector<std::string>& bottoms) const;
  std::string make(caffe::LayerParameter layer);                 // adds a layer with an intermediate blob as top
  void result(caffe::LayerParameter layer, size_t outputs = 1);  // adds a layer whose tops are the node's outputs
  void alias(const std::string& blob);                           // the node's output is this blob
  void constantResult(::onnx::TensorProto tensor);
  std::string reshaped(const std::string& blob, const Dims& dims, bool last = false);  // make(), or result()
  void weights(caffe::LayerParameter& layer, const Dims& dims, std::vector<float> values) const;
  // The only reader of the output if it has this type, else nullptr.
  const ::onnx::NodeProto* onlyReader(const char* op) const;

  std::string label() const;
  template <class... A>
  [[noreturn]] void refuse(fmt::format_string<A...> why, A&&... args) const {
    invalid("{} cannot be imported: {}", label(), fmt::format(why, std::forward<A>(args)...));
  }

 private:
  ImportGraph& graph_;
  const ::onnx::NodeProto& node_;
  std::string name_;
};

using ImportConversion = void (*)(ImportNode&);
using ImportConversions = std::map<std::string, ImportConversion>;  // by op_type

void addImportArithmetic(ImportConversions&);
void addImportConstants(ImportConversions&);  // of nodes whose inputs are all known
void addImportElementwise(ImportConversions&);
void addImportNormalisations(ImportConversions&);
void addImportNumbers(ImportConversions&);  // of nodes whose inputs are all known
void addImportPooling(ImportConversions&);
void addImportResize(ImportConversions&);
void addImportShapes(ImportConversions&);
void addImportWeighted(ImportConversions&);

}  // namespace crema::exchange
