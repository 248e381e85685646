#include "net/builder.h"

#include <algorithm>
#include <set>

#include "base/log.h"
#include "base/text.h"
#include "layers/record_layer.h"
#include "model/filter.h"
#include "model/proto_io.h"
#include "model/splits.h"
#include "net/memory_use.h"

namespace crema::net {

namespace {

// "in phase TEST", and which layers have no place in it: of a blob that nobody makes, one of them is often the maker.
std::string phaseOf(const caffe::NetState& state, const caffe::NetParameter& written, const caffe::NetParameter& kept) {
  std::set<std::string> here, elsewhere;
  for (const auto& layer : kept.layer()) here.insert(layer.name());
  for (const auto& layer : written.layer())
    if (!here.count(layer.name())) elsewhere.insert(layer.name());
  return fmt::format("in phase {}{}", caffe::Phase_Name(state.phase()),
                     elsewhere.empty() ? "" : ", in which rules leave out layers " + joined(elsewhere));
}

}  // namespace

Net::Builder::Builder(Net& net, const caffe::NetParameter& description, const caffe::NetState& state)
    : net_(net),
      param_(model::filterNet(description, state,
                              [&](const std::string& sentence) {
                                if (net.options_.log) LOG_INFO("{}", sentence);
                              })),
      state_(state) {
  *param_.mutable_state() = state;
  if (net.options_.log) LOG_INFO("Initializing net from parameters: \n{}", model::toText(param_));
  inside([&] { return phaseOf(state, description, param_); }, [&] { param_ = model::insertSplits(param_); });
  memory_ = memoryUse(param_, registry());
}

void Net::Builder::build() {
  net_.name_ = param_.name();
  if (net_.options_.data.use != layers::PassUse::kTraining) net_.statistics_.fix();
  net_.phase_ = state_.phase();
  for (const auto& layer : param_.layer()) addLayer(layer);
  pruneBackward();
  findOutputs();
  placeParams();
}

const layers::LayerRegistry& Net::Builder::registry() const {
  return net_.options_.registry ? *net_.options_.registry : layers::builtinLayers();
}

layers::LayerContext Net::Builder::contextOf(const caffe::LayerParameter& param) {
  const NetOptions& o = net_.options_;
  layers::LayerContext c{o.kernels, o.dtype, param.phase(), &net_.run_, &o.data};
  c.fills = o.fills;
  // Of equal names the first shares.
  c.fillsParams =
      !o.sharesTrainedWith || !o.sharesTrainedWith->hasLayer(param.name()) || layersOfName_[param.name()] > 0;
  c.needsBackward = o.needsBackward && o.data.use != layers::PassUse::kScoring;
  c.memory = memory_[net_.layers_.size()];
  c.sameNameBefore = layersOfName_[param.name()]++;
  return c;
}

void Net::Builder::addLayer(const caffe::LayerParameter& given) {
  caffe::LayerParameter param = given;
  if (!param.has_phase()) param.set_phase(state_.phase());
  if (param.propagate_down_size() && param.propagate_down_size() != param.bottom_size())
    invalid("propagate_down needs no entry or one per bottom: {} entries, {} bottoms\n  in layer '{}' ({})",
            param.propagate_down_size(), param.bottom_size(), param.name(), param.type());
  const NetOptions& o = net_.options_;
  if (o.log) LOG_INFO("Creating layer {}", param.name());  // Caffe's factory
  if (o.log) LOG_INFO("Creating Layer {}", param.name());  // Caffe's net
  auto layer = inside([&] { return fmt::format("in layer '{}'", param.name()); },
                      [&] { return registry().make(param, contextOf(param)); });
  Wire wire;
  bool backward = connectBottoms(param, wire);
  connectTops(param, *layer, wire);
  layer->setUp(wire.bottoms, wire.tops);
  addParams(*layer);
  const bool below = backward, force = param_.force_backward();
  for (int i = 0; i < static_cast<int>(layer->params().size()); ++i) {
    const auto& specs = layer->param();  // set-up may have added some
    const double lr = i < specs.param_size() ? specs.param(i).lr_mult() : 1.0;
    const bool learns = lr != 0 || force;
    layer->setParamPropagate(i, learns);
    backward = backward || learns;
  }
  for (size_t i = 0; i < wire.bottoms.size(); ++i) {
    bool down = below && blobBackward_[wire.bottomNames[i]];
    if (param.propagate_down_size()) down = param.propagate_down(static_cast<int>(i));
    if (force && layer->allowsForceBackward(static_cast<int>(i))) down = true;
    wire.propagateDown.push_back(down);
  }
  for (const auto& top : wire.topNames) blobBackward_[top] = backward;
  mayBackward_.push_back(backward || force);
  logLayer(*layer, wire);
  if (auto* records = dynamic_cast<layers::RecordLayer*>(layer.get())) net_.recordLayers_.push_back(records);
  net_.layers_.push_back(std::move(layer));
  net_.wires_.push_back(std::move(wire));
}

bool Net::Builder::connectBottoms(const caffe::LayerParameter& param, Wire& wire) {
  bool backward = false;
  for (int i = 0; i < param.bottom_size(); ++i) {
    const std::string& name = param.bottom(i);
    if (!available_.count(name)) {
      const std::string known = joined(available_);
      invalid("Unknown bottom blob '{}' (layer '{}', bottom index {}); blobs made before it and free: {}", name,
              param.name(), i, known.empty() ? "none" : known);
    }
    available_.erase(name);
    wire.bottoms.push_back(net_.blobs_.at(name).get());
    wire.bottomNames.push_back(name);
    bool needs = blobBackward_[name];
    if (param.propagate_down_size()) needs = param.propagate_down(i);
    backward = backward || needs;
    if (net_.options_.log) LOG_INFO("{} <- {}", param.name(), name);
  }
  return backward;
}

void Net::Builder::connectTops(const caffe::LayerParameter& param, const layers::Layer& layer, Wire& wire) {
  for (int i = 0; i < param.top_size(); ++i) {
    const std::string& name = param.top(i);
    const bool inPlace = i < param.bottom_size() && param.bottom(i) == name;
    if (inPlace) {
      if (!layer.allowsInPlace())
        invalid("{} cannot work in place: top '{}' is its bottom; give the top another name\n  in layer '{}' ({})",
                param.type(), name, param.name(), param.type());
      wire.tops.push_back(net_.blobs_.at(name).get());
    } else {
      if (net_.blobs_.count(name))
        invalid("Top blob '{}' produced by multiple sources.\n  in layer '{}' ({}); rename one of the tops", name,
                param.name(), param.type());
      auto blob = std::make_shared<Blob>(net_.options_.dtype);
      wire.tops.push_back(blob.get());
      net_.blobs_[name] = std::move(blob);
    }
    available_.insert(name);
    wire.topNames.push_back(name);
    if (net_.options_.log) LOG_INFO("{} -> {}{}", param.name(), name, inPlace ? " (in-place)" : "");
  }
  while (layer.arity().makesTop && static_cast<int>(wire.tops.size()) < layer.arity().minTops) {
    net_.unnamed_.push_back(std::make_shared<Blob>(net_.options_.dtype));
    wire.tops.push_back(net_.unnamed_.back().get());
    wire.topNames.push_back("(automatic)");
  }
}

void Net::Builder::addParams(layers::Layer& layer) {
  if (!layer.params().empty() && !named_.insert(layer.name()).second && net_.options_.log)
    LOG_WARNING(
        "two layers with parameters are named '{}'; test nets share weights by name, with the first of them only, "
        "as in Caffe: rename one",
        layer.name());
  const auto& param = layer.param();
  if (param.param_size() > static_cast<int>(layer.params().size()))
    invalid("Too many params specified for layer {}: {} `param` entries, {} parameters", layer.name(),
            param.param_size(), layer.params().size());
  for (int i = 0; i < static_cast<int>(layer.params().size()); ++i) {
    const caffe::ParamSpec spec = i < param.param_size() ? param.param(i) : caffe::ParamSpec();
    const auto found = spec.name().empty() ? paramByName_.end() : paramByName_.find(spec.name());
    if (found != paramByName_.end()) {
      shareParam(layer, i, spec, found->second);
      continue;
    }
    Learnable mine;
    mine.blob = layer.params()[static_cast<size_t>(i)];
    mine.lrMult = spec.lr_mult();
    mine.decayMult = spec.decay_mult();
    mine.keptPerPass = layer.keptPerPass(i);
    mine.label = fmt::format("{}/{}", layer.name(), i);
    const size_t index = net_.learnables_.size();
    if (!spec.name().empty()) paramByName_[spec.name()] = index;
    ownerSpec_[index] = spec;
    net_.learnables_.push_back(std::move(mine));
  }
}

void Net::Builder::shareParam(layers::Layer& layer, int i, const caffe::ParamSpec& spec, size_t owner) {
  Learnable& theirs = net_.learnables_[owner];
  const Blob& mine = *layer.params()[static_cast<size_t>(i)];
  const bool permissive = spec.share_mode() == caffe::ParamSpec::PERMISSIVE;
  if (permissive ? mine.count() != theirs.blob->count() : !(mine.shape() == theirs.blob->shape()))
    invalid("Cannot share param '{}' owned by {} with {}: shapes {} and {}{}", spec.name(), theirs.label, layer.label(),
            theirs.blob->shape().brief(), mine.shape().brief(),
            permissive ? "" : "; share_mode: PERMISSIVE needs equal counts only");
  const auto kept = layer.keptPerPass(i);
  if (kept.has_value() != theirs.keptPerPass.has_value())
    invalid("Cannot share param '{}' owned by {} with {}: one is learnt, the other holds running statistics",
            spec.name(), theirs.label, layer.label());
  if (kept) *theirs.keptPerPass *= *kept;
  caffe::ParamSpec& first = ownerSpec_[owner];
  const auto merge = [&](const char* what, bool here, double value, bool set, double before) {
    if (here && set && value != before)
      invalid("Shared param '{}' has mismatched {}: {} in {}, {} before; give it once", spec.name(), what, value,
              layer.label(), before);
  };
  merge("lr_mult", spec.has_lr_mult(), spec.lr_mult(), first.has_lr_mult(), first.lr_mult());
  merge("decay_mult", spec.has_decay_mult(), spec.decay_mult(), first.has_decay_mult(), first.decay_mult());
  if (spec.has_lr_mult()) first.set_lr_mult(spec.lr_mult()), theirs.lrMult = spec.lr_mult();
  if (spec.has_decay_mult()) first.set_decay_mult(spec.decay_mult()), theirs.decayMult = spec.decay_mult();
  shares_.push_back({&layer, i, owner});
}

// Backwards through the layers: one that no loss depends on computes no gradient.
void Net::Builder::pruneBackward() {
  std::set<std::string> underLoss, skipped;
  for (size_t n = net_.layers_.size(); n-- > 0;) {
    Wire& wire = net_.wires_[n];
    const layers::Layer& layer = *net_.layers_[n];
    bool contributes = false, allSkipped = true;
    for (size_t t = 0; t < wire.topNames.size(); ++t) {
      if (layer.lossWeight(static_cast<int>(t)) != 0 || underLoss.count(wire.topNames[t])) contributes = true;
      if (!skipped.count(wire.topNames[t])) allSkipped = false;
    }
    const bool force = param_.force_backward();
    wire.backward = mayBackward_[n] && ((contributes && !allSkipped) || force);
    for (size_t b = 0; b < wire.bottomNames.size(); ++b) {
      if (!force && (!contributes || (mayBackward_[n] && allSkipped))) wire.propagateDown[b] = false;
      if (contributes) underLoss.insert(wire.bottomNames[b]);
      if (!wire.propagateDown[b]) skipped.insert(wire.bottomNames[b]);
    }
    if (net_.options_.log)
      LOG_INFO("{} {}", layer.name(),
               wire.backward ? "needs backward computation." : "does not need backward computation.");
  }
}

void Net::Builder::findOutputs() {
  for (const auto& name : available_) {  // a std::set: alphabetical
    net_.outputs_.push_back(name);
    if (net_.options_.log) LOG_INFO("This network produces output {}", name);
  }
}

void Net::Builder::placeParams() {
  int64_t total = 0;
  const auto place = [&](bool statistics) {
    for (auto& p : net_.learnables_) {
      if (p.keptPerPass.has_value() != statistics) continue;
      p.offset = total;
      total += (int64_t{p.blob->count()} + 15) / 16 * 16;
      if (statistics) net_.statistics_.add(p.offset, p.blob->count(), *p.keptPerPass);
    }
  };
  place(false);
  const int64_t learnt = total;
  place(true);
  net_.statistics_.place(learnt, total - learnt);
  if (total > INT32_MAX - kSpare)
    invalid("the net has {} parameters, and 2^31 - {} are possible; make its layers smaller", total, 1 + kSpare);
  net_.flatData_ = Blob(Shape{static_cast<int>(total)}, net_.options_.dtype);
  net_.flatDiff_ = Blob(Shape{static_cast<int>(total) + kSpare}, net_.options_.dtype);
  for (auto& p : net_.learnables_) {
    p.blob->placeDataIn(net_.flatData_, p.offset);
    p.blob->placeDiffIn(net_.flatDiff_, p.offset);
  }
  for (const Share& s : shares_) {
    Blob& mine = *s.layer->params()[static_cast<size_t>(s.param)];
    mine.shareData(*net_.learnables_[s.owner].blob);
    mine.shareDiff(*net_.learnables_[s.owner].blob);
    net_.borrowed_.insert(&mine);
  }
}

void Net::Builder::logLayer(const layers::Layer& layer, const Wire& wire) {
  if (!net_.options_.log) return;
  LOG_INFO("Setting up {}", layer.name());
  for (size_t i = 0; i < wire.tops.size(); ++i) {
    LOG_INFO("Top shape: {}", wire.tops[i]->shape().text());
    if (layer.lossWeight(static_cast<int>(i)) != 0)
      LOG_INFO("    with loss weight {}", layer.lossWeight(static_cast<int>(i)));
    topBytes_ += int64_t{4} * wire.tops[i]->count();
  }
  LOG_INFO("Memory required for data: {}", topBytes_);
}

}  // namespace crema::net
