#include "exchange/import.h"

#include <algorithm>

#include "exchange/description.h"
#include "exchange/import_graph.h"

namespace crema::exchange {
namespace {

constexpr int64_t kOldest = 5, kNewest = 24;  // the opsets that are understood
constexpr int64_t kOpen = 10;  // a variable batch during import: with 1 it would be ambiguous what is broadcast

const ImportConversions& importConversions() {
  static const ImportConversions all = [] {
    ImportConversions c;
    for (auto add : {addImportArithmetic, addImportElementwise, addImportNormalisations, addImportPooling,
                     addImportResize, addImportShapes, addImportWeighted})
      add(c);
    return c;
  }();
  return all;
}
const ImportConversions& foldings() {
  static const ImportConversions all = [] {
    ImportConversions c;
    addImportConstants(c), addImportNumbers(c);
    return c;
  }();
  return all;
}

class Importer {
 public:
  // `items`: the size of a variable batch during import.
  Importer(const ::onnx::ModelProto& model, const InputShapes& given, int64_t items)
      : model_(model), given_(given), items_(items) {}

  OnnxImport run() {
    if (!model_.has_graph() || !model_.graph().node_size()) badData("it holds no graph: no ONNX model");
    readOpset();
    const auto& graph = model_.graph();
    g_.net.set_name(graph.name());
    for (const auto& output : graph.output()) g_.outputs.insert(output.name());
    findNeeded();
    for (const auto& t : graph.initializer()) g_.values[t.name()] = {&t, ""};
    for (const auto& input : graph.input())
      if (!g_.values.count(input.name()) && needed_.count(input.name())) addInput(input);
    checkGiven();
    for (const auto& node : graph.node())
      if (isNeeded(node) && !g_.done.count(&node)) add(node);
    checkOutputs();
    if (!open_.empty()) closeBatch();
    return {std::move(g_.net), std::move(g_.notes)};
  }
  // Whether constants may depend on the size of the batch.
  bool countsBatch() const { return !open_.empty() && shapeIsRead_; }

 private:
  void readOpset() {
    for (const auto& o : model_.opset_import())
      if (o.domain().empty() || o.domain() == "ai.onnx") g_.opset = o.version();
    if (g_.opset < kOldest || g_.opset > kNewest)
      invalid(
          "the model is of opset {}, and {} to {} are read; convert it (Python: "
          "onnx.version_converter.convert_version(model, 17))",
          g_.opset, kOldest, kNewest);
  }
  bool isNeeded(const ::onnx::NodeProto& node) const {
    return std::any_of(node.output().begin(), node.output().end(), [&](const auto& o) { return needed_.count(o); });
  }
  void findNeeded() {
    for (const std::string& o : g_.outputs) needed_.insert(o);
    const auto& nodes = model_.graph().node();
    for (int n = nodes.size() - 1; n >= 0; --n) {
      if (!isNeeded(nodes[n])) continue;
      if (!nodes[n].output_size()) badData("node '{}' ({}) has no output", nodes[n].name(), nodes[n].op_type());
      for (const std::string& i : nodes[n].input()) {
        if (i.empty()) continue;
        needed_.insert(i);
        g_.readersOf[i].push_back(&nodes[n]);
      }
    }
  }

  void checkGiven() const {
    std::string names;
    for (const auto& input : model_.graph().input())
      if (g_.types.count(input.name())) names += (names.empty() ? "" : ", ") + input.name();
    for (const auto& [name, shape] : given_)
      if (!g_.types.count(name)) invalid("-input_shape {}: the model has no such input; it has {}", name, names);
  }

  void addInput(const ::onnx::ValueInfoProto& input) {
    Dims dims;
    const auto given = given_.find(input.name());
    if (given != given_.end()) {
      dims = given->second;
    } else {
      const auto& shape = input.type().tensor_type().shape();
      if (!input.type().tensor_type().has_shape())
        invalid("input '{0}' has no shape; say it: -input_shape {0}:1,3,224,224", input.name());
      for (const auto& d : shape.dim()) {
        const bool known = d.has_dim_value() && d.dim_value() > 0;
        if (!known && !dims.empty())
          invalid("input '{}' leaves axis {} open ('{}'); say its shape: -input_shape {}:1,3,224,224", input.name(),
                  dims.size(), d.dim_param(), input.name());
        dims.push_back(known ? d.dim_value() : items_);
        if (!known) open_.insert(input.name());
      }
    }
    countOf(dims);
    caffe::LayerParameter l;
    l.set_name(g_.uniqueLayer(input.name()));
    l.set_type("Input");
    l.add_top(input.name());
    auto* shape = l.mutable_input_param()->add_shape();
    for (const int64_t d : dims) shape->add_dim(d);
    g_.values[input.name()] = {nullptr, input.name()};
    g_.types[input.name()] = input.type().tensor_type().elem_type();
    inside([&] { return "input '" + input.name() + "'"; }, [&] { g_.add(std::move(l)); });
  }

  void add(const ::onnx::NodeProto& node) {
    ImportNode view(g_, node);
    if (!node.domain().empty() && node.domain() != "ai.onnx")
      view.refuse("its operator is of domain '{}', no part of ONNX itself; export the model without it", node.domain());
    bool known = node.op_type() == "Shape";
    shapeIsRead_ |= known;
    if (!known) {
      known = true;
      for (int i = 0; i < node.input_size(); ++i) known &= !view.has(i) || view.constant(i);
    }
    const auto& all = known ? foldings() : importConversions();
    const auto found = all.find(node.op_type());
    if (found == all.end() && known)
      view.refuse("it computes with constants alone, in a way that is not done here; simplify the model first");
    if (found == all.end())
      view.refuse("no layer of Caffe computes {}; cut the model before it, or export it without", node.op_type());
    for (const auto& o : node.output())
      if (!o.empty() && g_.values.count(o)) badData("'{}' is made twice, the second time by {}", o, view.label());
    found->second(view);
    for (const auto& o : node.output()) g_.types[o] = typeOf(view);
  }

  static int typeOf(const ImportNode& n) {
    if (n.op() == "Cast") return static_cast<int>(n.i("to", 0));
    return n.op() == "Greater"  ? ::onnx::TensorProto::BOOL
           : n.op() == "ArgMax" ? ::onnx::TensorProto::INT64
           : n.has(0)           ? n.type(0)
                                : ::onnx::TensorProto::FLOAT;
  }

  void checkOutputs() {
    for (const auto& output : model_.graph().output()) {
      const auto known = g_.values.find(output.name());
      if (known == g_.values.end()) badData("output '{}' is made by no node", output.name());
      if (known->second.constant)
        invalid("output '{}' is a constant; the net has nothing to compute for it", output.name());
      if (g_.readersOf.count(output.name()))
        g_.notes.push_back(
            fmt::format("output '{}' is read inside the net, too: no output of Caffe's net, but a blob "
                        "of this name",
                        output.name()));
    }
  }

  // Sets variable batches to one item, where the net accepts that and nothing else changes.
  void closeBatch() {
    caffe::NetParameter one = g_.net;
    ImportGraph again;
    bool taken = true;
    try {
      for (auto& layer : *one.mutable_layer()) {
        for (auto& shape : *layer.mutable_input_param()->mutable_shape())
          if (open_.count(layer.top(0))) shape.set_dim(0, 1);
        if (layer.type() != "Input") layer.clear_input_param();
        caffe::LayerParameter described = layer;
        described.clear_blobs();
        again.add(std::move(described));
      }
      for (const auto& output : g_.outputs) {
        const Dims &all = g_.shapes.at(output), &now = again.shapes.at(output);
        taken &= all.size() == now.size() && countOf(now) * items_ == countOf(all);
      }
    } catch (const Error&) {  // a layer that accepts no other batch size
      taken = false;
    }
    if (taken) g_.net.Swap(&one);
    for (const auto& input : open_)
      g_.notes.push_back(fmt::format("input '{}': the batch is open, {} is written", input, taken ? 1 : items_));
  }

  const ::onnx::ModelProto& model_;
  const InputShapes& given_;
  const int64_t items_;
  bool shapeIsRead_ = false;
  ImportGraph g_;
  std::set<std::string> needed_, open_;
};

// Whether importing with this batch size gives the same net.
bool isNetFor(const ::onnx::ModelProto& model, const InputShapes& shapes, int64_t items,
              const caffe::NetParameter& net) {
  try {
    return Importer(model, shapes, items).run().net.SerializeAsString() == net.SerializeAsString();
  } catch (const Error&) {  // constants that do not fit another batch size
    return false;
  }
}

}  // namespace

OnnxImport importOnnx(const ::onnx::ModelProto& model, const InputShapes& shapes) {
  std::string why;
  if (auto described = importDescribed(model, shapes, &why)) return std::move(*described);
  Importer importer(model, shapes, kOpen);
  OnnxImport made = importer.run();
  if (importer.countsBatch() && !isNetFor(model, shapes, kOpen + 1, made.net)) {
    made = Importer(model, shapes, 1).run();
    made.notes.push_back("the net computes with the size of its batch: it holds for 1, and -input_shape says another");
  }
  if (!why.empty())
    made.notes.push_back(fmt::format("the net that crema export put beside the graph is not taken: {}", why));
  return made;
}

}  // namespace crema::exchange
