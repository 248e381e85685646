#include "exchange/graph.h"

namespace crema::exchange {

std::string OnnxGraph::unique(const std::string& base) {
  std::string name = base;
  for (int n = 2; !names_.insert(name).second; ++n) name = fmt::format("{}/{}", base, n);
  return name;
}

::onnx::TensorProto* OnnxGraph::tensor(const std::vector<int64_t>& dims, const std::string& base) {
  auto* t = proto.add_initializer();
  for (int64_t d : dims) t->add_dims(d);
  t->set_data_type(::onnx::TensorProto::FLOAT);
  t->set_name(unique(base));
  return t;
}

Value OnnxGraph::weights(const Blob& blob, const std::vector<int64_t>& dims, const std::string& base) {
  const auto [known, fresh] = known_.try_emplace({blob.data<float>(), dims});
  if (fresh) {
    pending_[proto.initializer_size()] = &blob;
    known->second = tensor(dims, base)->name();
  }
  return known->second;
}

Value OnnxGraph::floats(const std::vector<int64_t>& dims, const std::vector<float>& numbers, const std::string& base) {
  auto* t = tensor(dims, base);
  t->set_raw_data(numbers.data(), numbers.size() * sizeof(float));
  return t->name();
}

Value OnnxGraph::ints(const std::vector<int64_t>& numbers, const std::string& base) {
  auto* t = tensor({static_cast<int64_t>(numbers.size())}, base);
  t->set_data_type(::onnx::TensorProto::INT64);
  t->set_raw_data(numbers.data(), numbers.size() * sizeof(int64_t));
  return t->name();
}

int64_t OnnxGraph::weightBytes() const {
  int64_t bytes = 0;
  for (const auto& [at, blob] : pending_) bytes += int64_t{blob->count()} * 4;
  return bytes;
}

void OnnxGraph::fillWeights() {
  for (const auto& [at, blob] : pending_)
    proto.mutable_initializer(at)->set_raw_data(blob->data<float>(),
                                                static_cast<size_t>(blob->count()) * sizeof(float));
  pending_.clear();
}

Value OnnxLayer::weight(size_t param, const std::vector<int64_t>& dims) {
  return graph_.weights(blob(param), dims, fmt::format("{}/param{}", layer_.name(), param));
}

Value OnnxLayer::floats(const std::vector<int64_t>& dims, const std::vector<float>& values) {
  return graph_.floats(dims, values, layer_.name() + "/constant");
}

Value OnnxLayer::ints(const std::vector<int64_t>& values) { return graph_.ints(values, layer_.name() + "/sizes"); }

std::vector<Value> OnnxLayer::nodes(const char* op, size_t outputs, const std::vector<Value>& inputs,
                                    const OnnxAttributes& attributes) {
  auto* node = graph_.proto.add_node();
  node->set_op_type(op);
  node->set_name(graph_.unique(layer_.name() + "/" + op));
  for (const Value& v : inputs) node->add_input(v);
  for (size_t i = 0; i < outputs; ++i) node->add_output(graph_.unique(fmt::format("{}/{}/out", layer_.name(), op)));
  for (const auto& [name, value] : attributes) {
    auto* a = node->add_attribute();
    a->set_name(name);
    if (const auto* i = std::get_if<int64_t>(&value)) {
      a->set_type(::onnx::AttributeProto::INT), a->set_i(*i);
    } else if (const auto* f = std::get_if<float>(&value)) {
      a->set_type(::onnx::AttributeProto::FLOAT), a->set_f(*f);
    } else {
      a->set_type(::onnx::AttributeProto::INTS);
      for (int64_t v : std::get<std::vector<int64_t>>(value)) a->add_ints(v);
    }
  }
  return {node->output().begin(), node->output().end()};
}

Value OnnxLayer::node(const char* op, const std::vector<Value>& inputs, const OnnxAttributes& attributes) {
  return nodes(op, 1, inputs, attributes)[0];
}

Value OnnxLayer::reshaped(const Value& value, std::vector<int64_t> dims) {
  if (!dims.empty()) dims[0] = -1;
  return node("Reshape", {value, ints(dims)});
}

// A value that this layer made is renamed to the blob's name; another one (of a layer that changes nothing) keeps its
// name.
void OnnxLayer::top(size_t i, const Value& value) {
  const Blob* blob = tops_[i];
  const std::string& name = param().top(static_cast<int>(i));
  for (int n = firstNode_; n < graph_.proto.node_size(); ++n)
    for (std::string& output : *graph_.proto.mutable_node(n)->mutable_output()) {
      if (output != value) continue;
      output = graph_.unique(graph_.lastWriter[blob] == &layer_ ? name : name + "/" + layer_.name());
      for (int m = n + 1; m < graph_.proto.node_size(); ++m)
        for (std::string& input : *graph_.proto.mutable_node(m)->mutable_input())
          if (input == value) input = output;
      graph_.values[blob] = output;
      return;
    }
  graph_.values[blob] = value;
}

}  // namespace crema::exchange
