#include "cli/described_net.h"

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "model/filter.h"
#include "model/proto_io.h"
#include "model/upgrade.h"

namespace crema::cli {

void addNetFlags(CLI::App& app, NetFlags& f, bool phase) {
  app.add_option("--model,model", f.model, "the net prototxt")->required();
  if (phase) app.add_option("--phase", f.phase, "TRAIN or TEST")->capture_default_str();
  app.add_option("--level", f.level, "the state's level")->capture_default_str();
  app.add_option("--stage", f.stage, "the state's stages, with commas");
}

caffe::NetState stateOf(const NetFlags& f) {
  caffe::NetState state;
  caffe::Phase phase;
  if (!caffe::Phase_Parse(f.phase, &phase)) invalid("-phase must be TRAIN or TEST, not '{}'", f.phase);
  state.set_phase(phase);
  state.set_level(f.level);
  for (const std::string& stage : splitList(f.stage)) state.add_stage(stage);
  return state;
}

caffe::NetState stateOf(const NetFlags& f, const caffe::NetParameter& net) {
  caffe::NetState state = net.state();
  state.MergeFrom(stateOf(f));
  return state;
}

namespace {

int channelsOf(const caffe::TransformationParameter& t, const std::string& folder) {
  if (t.mean_value_size() > 1) return t.mean_value_size();
  if (t.force_gray()) return 1;
  const std::string mean = resolvePath(t.mean_file(), folder);
  if (mean.empty() || !fileExists(mean)) return 3;
  const Shape shape = layers::shapeOf(model::readBinary<caffe::BlobProto>(mean));
  return shape.axes() >= 3 ? shape[shape.axes() - 3] : 1;
}

// For shapes alone: gives a Data layer without its database the shape that its crop_size says; the channels are those
// of mean_value or mean_file, 1 with force_gray, else 3. Reports each on stderr.
void withoutMissingDatabases(caffe::NetParameter* net, const std::string& folder) {
  for (caffe::LayerParameter& layer : *net->mutable_layer()) {
    const auto& t = layer.transform_param();
    if (layer.type() != "Data" || !t.crop_size() || fileExists(resolvePath(layer.data_param().source(), folder)))
      continue;
    const int side = static_cast<int>(t.crop_size()), batch = static_cast<int>(layer.data_param().batch_size());
    const int channels = channelsOf(t, folder);
    std::fprintf(stderr, "layer '%s': there is no %s; its shapes are those of crop_size, %dx%dx%d\n",
                 layer.name().c_str(), layer.data_param().source().c_str(), channels, side, side);
    for (int top = 0; top < layer.top_size(); ++top) {
      auto* shape = layer.mutable_dummy_data_param()->add_shape();
      shape->add_dim(batch);
      for (const int dim : {channels, side, side})
        if (top == 0) shape->add_dim(dim);
    }
    layer.set_type("DummyData");
    layer.clear_transform_param();  // data_param stays: typeOf()
  }
}

}  // namespace

std::unique_ptr<net::Net> readFlaggedNet(const NetFlags& f, const net::NetOptions& options) {
  stateOf(f);  // throws for wrong flags
  caffe::NetParameter net = model::readNet(f.model);
  const caffe::NetState state = stateOf(f, net);
  if (!options.data.opensSources()) {
    net = model::filterNet(net, state);
    withoutMissingDatabases(&net, options.data.folder);
  }
  return std::make_unique<net::Net>(net, state, options, f.model);
}

DescribedNet::DescribedNet(const NetFlags& f) : kernels_(kernels::bestIsa(), 1) {
  net::NetOptions o;
  o.kernels = &kernels_;
  o.data.source = layers::FromNowhere{};
  o.fills = false;
  o.data.folder = parentDirectory(f.model);
  try {
    net_ = readFlaggedNet(f, o);
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::kIo || !fileExists(f.model) || isDirectory(f.model)) throw;
    ioError(
        "{}\n  its records give the shapes. A net that begins with Input (a deploy net), or a data layer "
        "with a crop_size, needs none",
        e.what());
  }
  for (int i = 0; i < static_cast<int>(net_->layers().size()); ++i)
    if (isCopy(i))
      for (const auto& top : tops(i)) copies_[top] = net_->layers()[static_cast<size_t>(i)]->param().bottom(0);
}

bool DescribedNet::isCopy(int layer) const {
  const auto& l = *net_->layers()[static_cast<size_t>(layer)];
  return l.type() == "Split" && l.name().ends_with("_split") && l.param().top(0) == l.name() + "_0";  // model/splits.h
}

std::string DescribedNet::typeOf(int layer) const {
  const auto& param = net_->layers()[static_cast<size_t>(layer)]->param();
  return param.type() == "DummyData" && param.has_data_param() ? "Data" : param.type();
}

std::vector<std::string> DescribedNet::bottoms(int layer) const {
  std::vector<std::string> all;
  for (const std::string& name : net_->layers()[static_cast<size_t>(layer)]->param().bottom()) {
    const auto copied = copies_.find(name);
    all.push_back(copied == copies_.end() ? name : copied->second);
  }
  return all;
}

std::vector<std::string> DescribedNet::tops(int layer) const {
  const auto& names = net_->layers()[static_cast<size_t>(layer)]->param().top();
  return {names.begin(), names.end()};
}

std::string grouped(int64_t number) {
  std::string text = std::to_string(number);
  for (int64_t at = static_cast<int64_t>(text.size()) - 3; at > 0; at -= 3) text.insert(static_cast<size_t>(at), ",");
  return text;
}

}  // namespace crema::cli
