#include "net/net.h"

#include <cmath>

#include "base/log.h"
#include "base/socket.h"
#include "layers/record_layer.h"
#include "model/hdf5_model.h"
#include "net/builder.h"

namespace crema::net {

Net::Net(const caffe::NetParameter& description, const caffe::NetState& state, const NetOptions& options,
         const std::string& origin)
    : options_(options), debugInfo_(description.debug_info()) {
  run_.seed = options.seed;
  inside([&] { return fmt::format("in net '{}'{}", description.name(), origin.empty() ? "" : " from " + origin); },
         [&] { Builder(*this, description, state).build(); });
  if (options.sharesTrainedWith) shareTrainedWith(*options.sharesTrainedWith);
  if (options.log) {
    LOG_INFO("Network initialization done.");
    LOG_INFO("{} bytes for all blobs, gradients and parameters", memoryBytes());
  }
}

Net::~Net() = default;

void Net::setStep(int64_t step, int rank, int64_t draw) {
  run_.step = step;
  run_.rank = rank;
  run_.draw = draw;
}

void Net::assign(const std::vector<int>& myRanks, int testWorkers) {
  options_.data.myRanks = myRanks, options_.data.testWorkers = testWorkers;
  for (auto* layer : recordLayers_) layer->assign();
}

size_t Net::carriedBytes() const {
  size_t all = 0;
  for (const auto& layer : layers_) all += layer->carriedBytes();
  return all;
}

void Net::saveCarried(int rank, char* to) const {
  for (const auto& layer : layers_) layer->saveCarried(rank, to), to += layer->carriedBytes();
}

void Net::restoreCarried(int rank, const char* from) {
  for (const auto& layer : layers_) layer->restoreCarried(rank, from), from += layer->carriedBytes();
}

void Net::checkInterrupt() const {
  if (run_.interrupt) run_.interrupt->check();
}

double Net::forward() { return forwardTo(static_cast<int>(layers_.size()) - 1); }

double Net::forwardTo(int lastLayer) { return forwardRange(0, lastLayer); }

double Net::forwardRange(int firstLayer, int lastLayer) {
  double loss = 0;
  for (int i = firstLayer; i <= lastLayer; ++i) loss += forwardLayer(i);
  return loss;
}

void Net::reshape() {
  for (size_t i = 0; i < layers_.size(); ++i) layers_[i]->shapeTops(wires_[i].bottoms, wires_[i].tops);
}

double Net::forwardLayer(int i) {
  checkInterrupt();
  const Wire& w = wires_[static_cast<size_t>(i)];
  if (hooks_.beforeForward) hooks_.beforeForward(i);
  double loss = 0;
  try {
    loss = layers_[static_cast<size_t>(i)]->forward(w.bottoms, w.tops);
  } catch (layers::BadItem& e) {
    for (const auto* layer : recordLayers_)
      if (const std::string record = layer->recordOf(e.item()); !record.empty())
        e.addFrame(fmt::format("item {} of layer '{}' is {}", e.item(), layer->name(), record));
    throw;
  }
  if (debugInfo_) logForward(i);
  if (hooks_.afterForward) hooks_.afterForward(i);
  return loss;
}

void Net::backward() {
  backwardRange(static_cast<int>(layers_.size()) - 1, 0);
  if (debugInfo_) logBackwardSums();
}

void Net::backwardRange(int fromLayer, int downToLayer) {
  for (int i = fromLayer; i >= downToLayer; --i)
    if (wires_[static_cast<size_t>(i)].backward) backwardLayer(i);
}

void Net::backwardLayer(int i) {
  checkInterrupt();
  const Wire& w = wires_[static_cast<size_t>(i)];
  if (hooks_.beforeBackward) hooks_.beforeBackward(i);
  layers_[static_cast<size_t>(i)]->backward(w.tops, w.propagateDown, w.bottoms);
  if (debugInfo_) logBackward(i);
  if (hooks_.afterBackward) hooks_.afterBackward(i);
}

void Net::clearParamDiffs() { flatDiff_.fillDiff(0); }

Blob& Net::blob(const std::string& name) const {
  const auto found = blobs_.find(name);
  if (found != blobs_.end()) return *found->second;
  std::string known;
  for (const auto& [n, b] : blobs_)  // without the tops of inserted splits
    if (n.find("_split_") == std::string::npos) known += (known.empty() ? "" : ", ") + n;
  invalid("net '{}' has no blob '{}' (its blobs: {})", name_, name, known);
}

bool Net::sharesMemory(int layer) const {
  const auto& registry = options_.registry ? *options_.registry : layers::builtinLayers();
  return registry.sharesMemory(layers_[static_cast<size_t>(layer)]->type());
}

std::vector<std::string> Net::blobNames() const {
  std::vector<std::string> names;
  for (const auto& [name, blob] : blobs_) names.push_back(name);
  return names;
}

double Net::outputLossWeight(const std::string& output) const {
  for (size_t i = 0; i < layers_.size(); ++i)
    for (size_t t = 0; t < wires_[i].topNames.size(); ++t)
      if (wires_[i].topNames[t] == output && layers_[i]->lossWeight(static_cast<int>(t)) != 0)
        return layers_[i]->lossWeight(static_cast<int>(t));
  return 0;
}

int64_t Net::memoryBytes() const {
  int64_t values = 2 * static_cast<int64_t>(flatData_.count());
  for (const auto& [name, blob] : blobs_)
    values += (phase_ == caffe::TRAIN ? 2 : 1) * static_cast<int64_t>(blob->count());
  return values * static_cast<int64_t>(sizeOf(options_.dtype));
}

bool Net::hasLayer(const std::string& name) const {
  return std::any_of(layers_.begin(), layers_.end(), [&](const auto& layer) { return layer->name() == name; });
}

void Net::shareTrainedWith(const Net& other) {
  for (const auto& source : other.layers_) {
    layers::Layer* target = nullptr;
    for (const auto& layer : layers_)
      if (layer->name() == source->name()) {
        target = layer.get();
        break;
      }
    if (!target) continue;
    if (target->params().size() != source->params().size())
      invalid(
          "layer '{}' has {} parameters in one net and {} in the other; write it alike in both, and give layers of "
          "one net names of their own",
          source->name(), target->params().size(), source->params().size());
    for (size_t j = 0; j < source->params().size(); ++j) {
      if (!(target->params()[j]->shape() == source->params()[j]->shape()))
        invalid(
            "Cannot share param {} weights from layer '{}'; shape mismatch.  Source param shape is {}; target param "
            "shape is {}",
            j, source->name(), source->params()[j]->shape().text(), target->params()[j]->shape().text());
      target->params()[j]->shareData(*source->params()[j]);
    }
  }
}

caffe::NetParameter Net::toProto(bool withDiff, bool ownersOnly) const {
  caffe::NetParameter proto;
  proto.set_name(name_);
  for (const auto& layer : layers_) {
    auto* out = proto.add_layer();
    *out = layer->param();
    out->clear_blobs();
    for (const auto& blob : layer->params()) {
      auto* stored = out->add_blobs();
      const bool absent = ownersOnly && borrowed_.count(blob.get());
      if (!absent || withDiff) crema::layers::toProto(*blob, withDiff, stored);
      if (absent) stored->clear_data(), stored->clear_double_data();
    }
  }
  return proto;
}

namespace {
bool finite(const Blob& blob) {
  return withType(blob.dtype(), [&]<class T>() {
    const T* data = blob.data<T>();
    for (int i = 0; i < blob.count(); ++i)
      if (!std::isfinite(data[i])) return false;
    return true;
  });
}
}  // namespace

std::string Net::firstNotFinite() const {
  std::string where;
  for (int i = 0; i < static_cast<int>(layers_.size()) && where.empty(); ++i) where = notFiniteIn(i);
  return where;
}

std::string Net::notFiniteIn(int layer) const {
  const auto& l = *layers_[static_cast<size_t>(layer)];
  const Wire& wire = wires_[static_cast<size_t>(layer)];
  for (size_t p = 0; p < l.params().size(); ++p)
    if (!finite(*l.params()[p])) return fmt::format("{}, parameter {}", l.label(), p);
  for (size_t t = 0; t < wire.tops.size(); ++t)
    if (!finite(*wire.tops[t])) return fmt::format("{}, top '{}'", l.label(), wire.topNames[t]);
  return {};
}

}  // namespace crema::net
