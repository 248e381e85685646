// Loads files of weights into a net, and finds the layers that got none.
#include <algorithm>
#include <map>

#include "base/log.h"
#include "base/text.h"
#include "net/net.h"

namespace crema::net {
namespace {

const void* memoryOf(const Blob& blob) {
  return withType(blob.dtype(), [&]<class T>() -> const void* { return blob.data<T>(); });
}

// "conv1, conv2, ip1 and 5 more"
std::string some(const std::vector<std::string>& names) {
  constexpr size_t kMost = 8;
  std::string text;
  for (size_t i = 0; i < std::min(names.size(), kMost); ++i) text += (i ? ", " : "") + names[i];
  return names.size() > kMost ? fmt::format("{} and {} more", text, names.size() - kMost) : text;
}

void copyValues(const model::Trained& trained, int layer, int index, Blob& to) {
  const std::string_view values = trained.valuesOf(layer, index);
  if (values.empty()) return layers::fromProto(trained.net.layer(layer).blobs(index), to);
  layers::checkStoredCount(static_cast<int64_t>(values.size() / sizeof(float)), to);
  if (to.dtype() == DType::kFloat32) return trained.copyValues(layer, index, to.mutableData<float>());
  std::vector<float> all(values.size() / sizeof(float));
  trained.copyValues(layer, index, all.data());
  std::copy(all.begin(), all.end(), to.mutableData<double>());
}

void checkReached(const Net& net, const std::string& files, const std::vector<std::string>& offered) {
  const auto wanted = net.trainable();
  if (wanted.empty() || net.untrained().size() < wanted.size()) return;
  const std::string is = net.name().empty() ? "the net" : fmt::format("net '{}'", net.name());
  if (offered.empty())
    invalid("the weights {} hold no layer with values, and {} needs them for {}; name a trained .caffemodel", files, is,
            some(wanted));
  invalid(
      "the weights {} fit no layer of {}: they are for {}, and the net has {}; name the weights of this net, or call "
      "its layers as they do",
      files, is, some(offered), some(wanted));
}

}  // namespace

void Net::copyTrainedFrom(const model::Trained& trained, const std::string& origin) {
  std::map<std::string, size_t> before;  // layers of a name that have been copied
  for (int i = 0; i < trained.net.layer_size(); ++i) {
    const auto& source = trained.net.layer(i);
    std::vector<layers::Layer*> targets;
    for (const auto& layer : layers_)
      if (layer->name() == source.name()) targets.push_back(layer.get());
    // Of equal names Caffe takes the first for all, from HDF5, which cannot have them, the last. Here the second of a file
    // goes to the second of the net, if there is one, or going on from a snapshot would not go on.
    const size_t at = trained.ownersOnly ? targets.size() : before[source.name()]++;
    if (!targets.empty())
      copyLayer(*targets[std::min(at, targets.size() - 1)], trained, i, origin);
    else
      LOG_INFO("Ignoring source layer {}", source.name());
  }
}

void Net::copyLayer(layers::Layer& target, const model::Trained& trained, int at, const std::string& origin) {
  const auto& source = trained.net.layer(at);
  const bool ownersOnly = trained.ownersOnly;
  const auto& params = target.params();
  const auto has = [&](size_t j) {
    return static_cast<int>(j) < source.blobs_size() &&
           !(ownersOnly && model::isAbsent(source.blobs(static_cast<int>(j))));
  };
  bool fits = static_cast<size_t>(source.blobs_size()) <= params.size();
  for (size_t j = 0; fits && j < params.size(); ++j) fits = has(j) || (ownersOnly && borrowed_.count(params[j].get()));
  if (!fits) {
    std::string there;
    for (int j = 0; ownersOnly && j < source.blobs_size(); ++j)
      if (has(static_cast<size_t>(j))) there += fmt::format("{}{}", there.empty() ? " (" : ", ", j);
    invalid(
        "Incompatible number of blobs for layer {}: {} has {}{}, the net needs {}; rename the layer to learn it from "
        "scratch",
        source.name(), origin, source.blobs_size(), there.empty() ? "" : there + ")", params.size());
  }
  for (size_t j = 0; j < params.size(); ++j) {
    if (!has(j)) continue;
    Blob& to = *params[j];
    const auto& from = source.blobs(static_cast<int>(j));
    if (!layers::shapeMatches(from, to.shape()))
      invalid(
          "Cannot copy param {} weights from layer '{}'; shape mismatch.  Source param shape is {}; target param "
          "shape is {}. To learn this "
          "layer's parameters from scratch rather than copying from a saved net, rename the layer.\n  in weights {}",
          j, source.name(), layers::shapeOf(from).text(), to.shape().text(), origin);
    inside([&] { return fmt::format("in blob {} of layer '{}' of weights {}", j, source.name(), origin); },
           [&] { copyValues(trained, at, static_cast<int>(j), to); });
    trained_.insert(&target);
  }
}

std::vector<std::string> Net::trainable() const {
  std::vector<std::string> names;
  for (const auto& layer : layers_)
    if (!layer->params().empty()) names.push_back(layer->name());
  return names;
}

std::vector<std::string> Net::untrained() const {
  std::set<const void*> given;
  for (const layers::Layer* layer : trained_)
    for (const auto& blob : layer->params()) given.insert(memoryOf(*blob));
  std::vector<std::string> names;
  for (const auto& layer : layers_) {
    const auto& all = layer->params();
    if (!std::all_of(all.begin(), all.end(), [&](const auto& blob) { return given.count(memoryOf(*blob)) > 0; }))
      names.push_back(layer->name());
  }
  return names;
}

void copyTrainedFiles(Net& net, const std::vector<std::string>& files, const std::vector<Net*>& others, bool log) {
  std::vector<std::string> offered;
  std::string list;
  for (const std::string& file : files) {
    if (file.ends_with(".solverstate"))
      invalid("{} is a solver's state, no weights: pass it with -snapshot, or the .caffemodel beside it", file);
    model::useTrained(file, [&](const model::Trained& trained) {
      if (log) LOG_INFO("Finetuning from {}", file);
      net.copyTrainedFrom(trained, file);
      for (Net* other : others) other->copyTrainedFrom(trained, file);
      for (const auto& layer : trained.net.layer())
        if (layer.blobs_size() > 0) offered.push_back(layer.name());
    });
    list += (list.empty() ? "" : ", ") + file;
  }
  checkReached(net, list, offered);
}

void warnOfUntrained(const Net& net, const std::string& files) {
  const auto names = net.untrained();
  if (!names.empty())
    LOG_WARNING("{} has no values for {}: the random values of their fillers enter the results", files, some(names));
}

std::vector<std::string> trainedFiles(const std::string& list) {
  auto files = splitList(list);
  if (files.empty()) invalid("the weights '{}' name no file; name one or more .caffemodel files", list);
  return files;
}

void copyTrainedFiles(Net& net, const std::string& list) { copyTrainedFiles(net, trainedFiles(list)); }

}  // namespace crema::net
