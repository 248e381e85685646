#include "exchange/description.h"

#include <sodium.h>

#include <algorithm>
#include <set>

#include "exchange/convert.h"
#include "exchange/tensors.h"
#include "model/proto_io.h"
#include "model/upgrade.h"

namespace crema::exchange {
namespace {

constexpr char kNet[] = "crema.net", kWeights[] = "crema.weights";
// Bytes of weights stored beside the graph; with more, none and no prototxt are stored.
constexpr size_t kMostBeside = 1 << 24;
constexpr int kVariant = sodium_base64_VARIANT_ORIGINAL;

std::string nameOf(const layers::Layer& layer, size_t param) { return fmt::format("{}/param{}", layer.name(), param); }

void addBlob(caffe::LayerParameter* layer, const Blob& blob) {
  auto* to = layer->add_blobs();
  for (const int d : blob.shape().dims()) to->mutable_shape()->add_dim(d);
  to->mutable_data()->Add(blob.data<float>(), blob.data<float>() + blob.count());
}

void set(::onnx::ModelProto& model, const char* key, const std::string& value) {
  auto* p = model.add_metadata_props();
  p->set_key(key), p->set_value(value);
}
std::string get(const ::onnx::ModelProto& model, const std::string& key) {
  for (const auto& p : model.metadata_props())
    if (p.key() == key) return p.value();
  return "";
}

// False where a parameter is neither in the graph nor beside it, or damaged.
bool fill(const net::Net& net, const ::onnx::ModelProto& model, const caffe::NetParameter& beside) {
  std::map<std::string, const ::onnx::TensorProto*> stored;
  for (const auto& t : model.graph().initializer()) stored[t.name()] = &t;
  std::map<std::string, const caffe::LayerParameter*> others;
  for (const auto& l : beside.layer()) others[l.name()] = &l;
  std::set<const void*> filled;
  for (const auto& layer : net.layers())
    for (size_t i = 0; i < layer->params().size(); ++i) {
      Blob& blob = *layer->params()[i];
      std::vector<float> values;
      if (const auto t = stored.find(nameOf(*layer, i)); t != stored.end()) {
        values = floatsOf(*t->second);
      } else if (const auto l = others.find(layer->name()); l != others.end()) {
        if (static_cast<int>(i) >= l->second->blobs_size()) return false;
        const auto& data = l->second->blobs(static_cast<int>(i)).data();
        values.assign(data.begin(), data.end());
      } else if (filled.count(blob.data<float>())) {  // shared
        continue;
      }
      if (static_cast<int64_t>(values.size()) != blob.count()) return false;
      std::copy(values.begin(), values.end(), blob.mutableData<float>());
      filled.insert(blob.data<float>());
    }
  return true;
}

// Gives inputs the shapes from the flags; false where the net lacks one of them.
bool reshapeInputs(caffe::NetParameter& net, const InputShapes& shapes) {
  size_t found = 0;
  for (auto& layer : *net.mutable_layer())
    for (int t = 0; layer.type() == "Input" && t < layer.top_size(); ++t) {
      const auto given = shapes.find(layer.top(t));
      auto* all = layer.mutable_input_param()->mutable_shape();
      if (given == shapes.end() || (t >= all->size() && all->size() != 1)) continue;
      while (all->size() <= t) *all->Add() = all->Get(0);
      all->at(t).clear_dim();
      for (const int64_t d : given->second) all->at(t).add_dim(d);
      ++found;
    }
  return found == shapes.size();
}

}  // namespace

void addDescription(::onnx::ModelProto& model, caffe::NetParameter description, const net::Net& net) {
  std::set<std::string> stored, names;
  for (const auto& t : model.graph().initializer()) stored.insert(t.name());
  caffe::NetParameter beside;
  std::set<const void*> known;
  for (const auto& layer : net.layers()) {
    if (!names.insert(layer->name()).second) return;  // weights are matched by layer names
    bool all = true;
    for (size_t i = 0; i < layer->params().size(); ++i)
      all &= stored.count(nameOf(*layer, i)) || known.count(layer->params()[i]->data<float>());
    for (const auto& blob : layer->params()) known.insert(blob->data<float>());
    if (all) continue;
    auto* l = beside.add_layer();
    l->set_name(layer->name());
    for (const auto& blob : layer->params()) addBlob(l, *blob);
  }
  const std::string bytes = beside.SerializeAsString();
  if (bytes.size() > kMostBeside) return;
  description.clear_state();
  for (auto& l : *description.mutable_layer()) l.clear_include(), l.clear_exclude(), l.clear_blobs();
  set(model, kNet, model::toText(description));
  std::string text(sodium_base64_encoded_len(bytes.size(), kVariant), 0);
  sodium_bin2base64(text.data(), text.size(), reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(),
                    kVariant);
  text.pop_back();  // the terminating 0
  if (beside.layer_size()) set(model, kWeights, text);
}

std::optional<OnnxImport> importDescribed(const ::onnx::ModelProto& model, const InputShapes& shapes,
                                          std::string* why) {
  const std::string text = get(model, kNet), coded = get(model, kWeights);
  if (text.empty()) return std::nullopt;
  try {
    OnnxImport made;
    made.net = model::parseText<caffe::NetParameter>(text, kNet);
    model::upgradeNet(&made.net, kNet);
    std::string bytes(coded.size(), 0);
    size_t size = 0;
    if (sodium_base642bin(reinterpret_cast<unsigned char*>(bytes.data()), bytes.size(), coded.data(), coded.size(),
                          nullptr, &size, nullptr, kVariant))
      badData("its weights are damaged");
    caffe::NetParameter beside;
    model::parseBinaryInto(std::string_view(bytes).substr(0, size), kWeights, &beside);
    kernels::Context kernels(kernels::bestIsa(), 1);
    net::NetOptions o;
    o.kernels = &kernels, o.fills = false, o.data.source = layers::FromNowhere{};
    caffe::NetState state;
    state.set_phase(caffe::TEST);
    net::Net net(made.net, state, o, kNet);
    if (!fill(net, model, beside)) badData("its weights are not all there");
    if (exportOnnx(net).model.graph().SerializeAsString() != model.graph().SerializeAsString())
      badData("the graph is another by now");
    if (!reshapeInputs(made.net, shapes)) badData("-input_shape is for an input that it does not have");
    std::map<std::string, const layers::Layer*> built;
    for (const auto& layer : net.layers()) built[layer->name()] = layer.get();
    for (auto& layer : *made.net.mutable_layer())
      if (const auto b = built.find(layer.name()); b != built.end())
        for (const auto& blob : b->second->params()) addBlob(&layer, *blob);
    made.notes.push_back("written by crema export: the net that was exported, bit for bit");
    return made;
  } catch (const Error& e) {  // such as missing sources of data layers; the graph is imported instead
    *why = e.message();
    return std::nullopt;
  }
}

}  // namespace crema::exchange
