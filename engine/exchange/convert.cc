#include "exchange/convert.h"

#include <algorithm>
#include <optional>

#include "base/text.h"
#include "exchange/graph.h"
#include "exchange/selection.h"

namespace crema::exchange {
namespace {

constexpr int64_t kMostBytes = 2147483647;  // protobuf's limit for a message

const OnnxConversions& exportConversions() {
  static const OnnxConversions all = [] {
    OnnxConversions c;
    for (auto add :
         {addOnnxActivations, addOnnxNormalisations, addOnnxPooling, addOnnxRecurrent, addOnnxShapes, addOnnxWeighted})
      add(c);
    return c;
  }();
  return all;
}

class Exporter {
 public:
  explicit Exporter(net::Net& net) : net_(net), selection_(selectForOnnx(net)) {}

  OnnxExport run() {
    checkTypes();
    OnnxGraph graph = nodes();
    const auto shapes = portShapes();
    const auto more = oneItemMore(graph);
    ports(graph, shapes, more.value_or(shapes));
    OnnxExport made;
    made.model.set_ir_version(8);
    made.model.add_opset_import()->set_version(17);
    made.model.set_producer_name("crema");
    made.model.set_producer_version(CREMA_VERSION);
    const int64_t bytes = static_cast<int64_t>(graph.proto.ByteSizeLong()) + graph.weightBytes() + 65536;
    if (bytes > kMostBytes)
      invalid(
          "the net needs {} bytes as an ONNX model, and a protobuf file holds {}; export its parts, or score it with "
          "`crema test`",
          bytes, kMostBytes);
    graph.fillWeights();
    graph.proto.set_name(net_.name().empty() ? "net" : net_.name());
    made.model.mutable_graph()->Swap(&graph.proto);
    note(made.notes, shapes[0], more.has_value());
    return made;
  }

 private:
  using Shapes = std::vector<Shape>;  // of the inputs, then of the outputs

  template <class Use>
  void eachNeeded(Use use) const {
    for (int i = 0; i < static_cast<int>(net_.layers().size()); ++i)
      if (selection_.needed[static_cast<size_t>(i)]) use(i, *net_.layers()[static_cast<size_t>(i)]);
  }

  void checkTypes() const {
    eachNeeded([&](int, const layers::Layer& layer) {
      if (!isOnnxSource(layer) && !exportConversions().count(layer.type()))
        invalid("{} cannot be exported to ONNX: there is no conversion for type {}; cut the net below it",
                layer.label(), layer.type());
    });
  }

  OnnxGraph nodes() const {
    OnnxGraph graph;
    for (const OnnxPort& port : selection_.inputs) graph.values[port.blob] = graph.unique(port.name);
    eachNeeded([&](int i, const layers::Layer& layer) {
      if (layer.type() != "Split" && layer.type() != "Dropout")
        for (const Blob* top : net_.tops(i)) graph.lastWriter[top] = &layer;
    });
    eachNeeded([&](int i, const layers::Layer& layer) {
      if (isOnnxSource(layer)) return;
      OnnxLayer view(graph, layer, net_.bottoms(i), net_.tops(i));
      exportConversions().at(layer.type())(view);
    });
    for (const OnnxPort& port : selection_.outputs) {
      const Value& value = graph.values.at(port.blob);
      if (value == port.name) continue;
      auto* node = graph.proto.add_node();
      node->set_op_type("Identity");
      node->set_name(graph.unique(port.name + "/Identity"));
      node->add_input(value);
      node->add_output(graph.unique(port.name));
      graph.values[port.blob] = node->output(0);
    }
    return graph;
  }

  Shapes portShapes() const {
    Shapes all;
    for (const OnnxPort& port : selection_.inputs) all.push_back(port.blob->shape());
    for (const OnnxPort& port : selection_.outputs) all.push_back(port.blob->shape());
    return all;
  }

  // Reshapes the inputs to one item more in their batch; the new shapes, or nullopt where the graph then differs.
  std::optional<Shapes> oneItemMore(const OnnxGraph& graph) {
    if (selection_.inputs.empty() || selection_.inputs[0].blob->shape().axes() == 0) return std::nullopt;
    const int batch = selection_.inputs[0].blob->shape()[0];
    try {
      for (int i = 0; i < static_cast<int>(net_.layers().size()); ++i)
        for (Blob* top : net_.tops(i)) {
          std::vector<int> dims = top->shape().dims();
          if (!isOnnxSource(*net_.layers()[static_cast<size_t>(i)]) || dims.empty() || dims[0] != batch) continue;
          ++dims[0];
          top->reshape(Shape(dims));
        }
      for (int i = 0; i < static_cast<int>(net_.layers().size()); ++i) {
        layers::Layer& layer = *net_.layers()[static_cast<size_t>(i)];
        const bool asked = selection_.needed[static_cast<size_t>(i)] || layer.type() == "Split";
        if (asked && !isOnnxSource(layer)) layer.shapeTops(net_.bottoms(i), net_.tops(i));
      }
      if (nodes().proto.SerializeAsString() == graph.proto.SerializeAsString()) return portShapes();
    } catch (const Error&) {  // a layer that accepts no other batch size
    }
    return std::nullopt;
  }

  static void port(::onnx::ValueInfoProto* info, const Value& name, const Shape& shape, const Shape& more, int batch) {
    info->set_name(name);
    auto* type = info->mutable_type()->mutable_tensor_type();
    type->set_elem_type(::onnx::TensorProto::FLOAT);
    auto* dims = type->mutable_shape();
    for (int a = 0; a < shape.axes(); ++a) {
      auto* dim = dims->add_dim();
      if (shape[a] == more[a])
        dim->set_dim_value(shape[a]);
      else if (shape[a] == batch && more[a] == batch + 1)
        dim->set_dim_param("batch");
    }
  }

  void ports(OnnxGraph& graph, const Shapes& shapes, const Shapes& more) const {
    const int batch = shapes[0].axes() ? shapes[0][0] : 1;
    size_t at = 0;
    for (const OnnxPort& p : selection_.inputs)
      port(graph.proto.add_input(), p.name, shapes[at], more[at], batch), ++at;
    for (const OnnxPort& p : selection_.outputs)
      port(graph.proto.add_output(), graph.values.at(p.blob), shapes[at], more[at], batch), ++at;
  }

  void note(std::vector<std::string>& notes, const Shape& first, bool anyBatch) const {
    if (!selection_.leftOut.empty()) notes.push_back("left out, as no score needs it: " + joined(selection_.leftOut));
    eachNeeded([&](int, const layers::Layer& layer) {
      if (isOnnxSource(layer) && layer.param().has_transform_param())
        notes.push_back(fmt::format("the input takes images as transform_param of {} leaves them ({})", layer.label(),
                                    layer.param().transform_param().ShortDebugString()));
    });
    if (!anyBatch && !selection_.inputs.empty() && first.axes())
      notes.push_back(fmt::format("the batch is fixed, {}: a layer depends on it", first[0]));
  }

  net::Net& net_;
  const OnnxSelection selection_;
};

}  // namespace

OnnxExport exportOnnx(net::Net& net) { return Exporter(net).run(); }

}  // namespace crema::exchange
