#include "cli/described_net.h"

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
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

std::unique_ptr<Net> readFlaggedNet(const NetFlags& f, const NetOptions& options) {
  stateOf(f);  // flags are judged first
  const caffe::NetParameter net = readNet(f.model);
  return std::make_unique<Net>(net, stateOf(f, net), options, f.model);
}

DescribedNet::DescribedNet(const NetFlags& f) : kernels_(kernels::bestIsa(), 1) {
  NetOptions o;
  o.kernels = &kernels_;
  o.fills = o.data.openSources = false;
  o.data.folder = parentDirectory(f.model);
  try {
    net_ = readFlaggedNet(f, o);
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::kIo) throw;
    ioError("{}\n  whose shapes are wanted; a deploy net, which begins with Input, needs no data for them", e.what());
  }
  for (int i = 0; i < static_cast<int>(net_->layers().size()); ++i)
    if (isCopy(i))
      for (const auto& top : tops(i)) copies_[top] = net_->layers()[static_cast<size_t>(i)]->param().bottom(0);
}

bool DescribedNet::isCopy(int layer) const {
  const auto& l = *net_->layers()[static_cast<size_t>(layer)];
  return l.type() == "Split" && l.name().ends_with("_split") && l.param().top(0) == l.name() + "_0";  // model/splits.h
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
