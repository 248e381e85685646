#include "exchange/import_graph.h"

#include <algorithm>

#include "base/thread_pool.h"
#include "layers/builtin.h"
#include "layers/registry.h"

namespace crema::exchange {

ImportGraph::ImportGraph() : kernels_(kernels::bestIsa(), 1) {}

std::string ImportGraph::uniqueLayer(const std::string& base) {
  std::string name = base;
  for (int n = 2; !layers_.insert(name).second; ++n) name = fmt::format("{}/{}", base, n);
  return name;
}

std::string ImportGraph::uniqueBlob(const std::string& base) {
  std::string name = base;
  for (int n = 2; values.count(name) || readersOf.count(name) || outputs.count(name) || !blobs_.insert(name).second;
       ++n)
    name = fmt::format("{}/{}", base, n);
  return name;
}

const ::onnx::TensorProto* ImportGraph::keep(::onnx::TensorProto constant) {
  kept_.push_back(std::move(constant));
  return &kept_.back();
}

size_t ImportGraph::readers(const std::string& value) const {
  const auto found = readersOf.find(value);
  return (found == readersOf.end() ? 0 : found->second.size()) + outputs.count(value);
}

// Sets the layer up on blobs with these shapes, without values, which checks it and gives its tops' shapes.
void ImportGraph::add(caffe::LayerParameter layer) {
  layers::RunState run;
  layers::DataOptions data;
  layers::LayerContext context;
  context.kernels = &kernels_, context.run = &run, context.data = &data;
  context.fills = context.needsBackward = false;
  caffe::LayerParameter described = layer;
  described.clear_blobs();
  const auto made = layers::builtinLayers().make(described, context);
  std::deque<Blob> blobs;
  layers::Blobs bottoms, tops;
  for (const std::string& name : layer.bottom()) {
    const Dims& dims = shapes.at(name);
    bottoms.push_back(&blobs.emplace_back(Shape(std::vector<int>(dims.begin(), dims.end())), DType::kFloat32));
  }
  for (int i = 0; i < layer.top_size(); ++i) tops.push_back(&blobs.emplace_back());
  inside([&] { return "in " + made->label(); }, [&] { made->setUp(bottoms, tops); });
  for (int i = 0; i < layer.blobs_size(); ++i) {
    const auto& have = layer.blobs(i).shape().dim();
    const auto& want = made->params().at(static_cast<size_t>(i))->shape().dims();
    if (!std::equal(have.begin(), have.end(), want.begin(), want.end()))
      badData("{} has weights of {}, and its input asks for {}", made->label(), textOf({have.begin(), have.end()}),
              textOf({want.begin(), want.end()}));
  }
  for (int i = 0; i < layer.top_size(); ++i) {
    const auto& dims = tops[static_cast<size_t>(i)]->shape().dims();
    shapes[layer.top(i)] = Dims(dims.begin(), dims.end());
  }
  net.add_layer()->Swap(&layer);
}

// Node "conv1/Conv" becomes layer conv1, or its first layer does. A leading "/", as PyTorch writes, is dropped, since
// names with it would look like absolute paths.
ImportNode::ImportNode(ImportGraph& graph, const ::onnx::NodeProto& node) : graph_(graph), node_(node) {
  name_ = !node.name().empty() ? node.name() : node.output_size() ? node.output(0) : node.op_type();
  if (const std::string ending = "/" + node.op_type(); name_.size() > ending.size() && name_.ends_with(ending))
    name_.resize(name_.size() - ending.size());
  if (name_.size() > 1 && name_[0] == '/') name_.erase(0, 1);
}

std::string ImportNode::label() const {
  const std::string name = !node_.name().empty() ? node_.name() : node_.output_size() ? node_.output(0) : "";
  return fmt::format("node '{}' ({})", name, node_.op_type());
}

void ImportNode::note(const std::string& text) {
  auto& all = graph_.notes;
  if (std::find(all.begin(), all.end(), text) == all.end()) all.push_back(text);
}

bool ImportNode::constant(int i) const {
  if (!has(i)) return false;
  const auto known = graph_.values.find(node_.input(i));
  if (known == graph_.values.end()) badData("{} reads '{}', which nothing before it makes", label(), node_.input(i));
  return known->second.constant != nullptr;
}

const ::onnx::TensorProto& ImportNode::tensor(int i) const {
  if (!has(i)) badData("{} has no input {}", label(), i);
  if (!constant(i))
    refuse("its input {}, '{}', is computed by the net, and a layer needs it in advance", i, node_.input(i));
  const auto& t = *graph_.values.at(node_.input(i)).constant;
  countOf(dimsOf(t));
  return t;
}

float ImportNode::number(int i) const {
  const auto all = floats(i);
  if (all.size() != 1) badData("{}: its input {}, '{}', is no single number", label(), i, node_.input(i));
  return all[0];
}

std::string ImportNode::blob(int i) const {
  if (!has(i)) badData("{} has no input {}", label(), i);
  if (constant(i)) refuse("its input {}, '{}', is a constant, and a layer takes a blob there", i, node_.input(i));
  return graph_.values.at(node_.input(i)).blob;
}

int ImportNode::type(int i) const {
  if (constant(i)) return tensor(i).data_type();
  const auto known = graph_.types.find(node_.input(i));
  return known == graph_.types.end() ? ::onnx::TensorProto::FLOAT : known->second;
}

void ImportNode::refuseWhole() const {
  if (isInteger(type()))
    refuse("it computes with whole numbers, which ONNX rounds and a layer does not; Cast its input to float first");
}

const ::onnx::AttributeProto* ImportNode::attribute(const char* name) const {
  for (const auto& a : node_.attribute())
    if (a.name() == name) return &a;
  return nullptr;
}

int64_t ImportNode::i(const char* name, int64_t otherwise) const {
  const auto* a = attribute(name);
  return a ? a->i() : otherwise;
}
float ImportNode::f(const char* name, float otherwise) const {
  const auto* a = attribute(name);
  return a ? a->f() : otherwise;
}
std::string ImportNode::s(const char* name, const char* otherwise) const {
  const auto* a = attribute(name);
  return a ? a->s() : otherwise;
}
std::vector<int64_t> ImportNode::list(const char* name, std::vector<int64_t> otherwise) const {
  const auto* a = attribute(name);
  return a ? std::vector<int64_t>(a->ints().begin(), a->ints().end()) : otherwise;
}
std::vector<int64_t> ImportNode::listOrInput(const char* name, int input) const {
  return has(input) ? ints(input) : list(name);
}

int64_t ImportNode::axis(int64_t given, size_t axes) const {
  const auto count = static_cast<int64_t>(axes);
  if (given < -count || given >= count) badData("{}: axis {} of {} axes", label(), given, count);
  return given < 0 ? given + count : given;
}

caffe::LayerParameter ImportNode::layer(const char* type, const std::vector<std::string>& bottoms) const {
  caffe::LayerParameter l;
  l.set_type(type);
  for (const auto& b : bottoms) l.add_bottom(b);
  return l;
}

std::string ImportNode::make(caffe::LayerParameter l) {
  l.set_name(graph_.uniqueLayer(name_ + "/" + l.type()));
  l.add_top(graph_.uniqueBlob(l.name()));
  const std::string top = l.top(0);
  inside([&] { return label(); }, [&] { graph_.add(std::move(l)); });
  return top;
}

void ImportNode::result(caffe::LayerParameter l, size_t outputs) {
  l.set_name(graph_.uniqueLayer(name_));
  for (size_t o = 0; o < outputs; ++o) {
    const std::string& name = node_.output(static_cast<int>(o));
    l.add_top(name.empty() ? graph_.uniqueBlob(name_ + "/unused") : name);
    if (!name.empty()) graph_.values[name] = {nullptr, name};
  }
  inside([&] { return label(); }, [&] { graph_.add(std::move(l)); });
}

void ImportNode::alias(const std::string& blob) {
  const std::string& name = node_.output(0);
  if (graph_.outputs.count(name))  // an output of the graph must be a blob of this name
    return result(layer("Split", {blob}));
  graph_.values[name] = {nullptr, blob};
}

void ImportNode::constantResult(::onnx::TensorProto tensor) {
  tensor.set_name(node_.output(0));
  graph_.values[node_.output(0)] = {graph_.keep(std::move(tensor)), ""};
}

// The first axis is kept (0) or inferred (-1), so that any batch fits.
std::string ImportNode::reshaped(const std::string& from, const Dims& dims, bool last) {
  const Dims& have = shape(from);
  caffe::LayerParameter l = layer("Reshape", {from});
  auto* to = l.mutable_reshape_param()->mutable_shape();
  for (size_t a = 0; a < dims.size(); ++a) to->add_dim(a ? dims[a] : !have.empty() && have[0] == dims[0] ? 0 : -1);
  if (countOf(have) != countOf(dims)) badData("{}: {} cannot be {}", label(), textOf(have), textOf(dims));
  if (last) return result(std::move(l)), node_.output(0);
  return make(std::move(l));
}

void ImportNode::weights(caffe::LayerParameter& l, const Dims& dims, std::vector<float> values) const {
  if (countOf(dims) != static_cast<int64_t>(values.size()))
    badData("{}: {} values for weights of {}", label(), values.size(), textOf(dims));
  auto* blob = l.add_blobs();
  for (const int64_t d : dims) blob->mutable_shape()->add_dim(d);
  blob->mutable_data()->Add(values.begin(), values.end());
}

const ::onnx::NodeProto* ImportNode::onlyReader(const char* op) const {
  const auto found = graph_.readersOf.find(node_.output(0));
  if (found == graph_.readersOf.end() || found->second.size() != 1 || graph_.outputs.count(node_.output(0)))
    return nullptr;
  return found->second[0]->op_type() == op ? found->second[0] : nullptr;
}

}  // namespace crema::exchange
