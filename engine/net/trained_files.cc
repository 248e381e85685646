// Loads files of weights into a net, and finds the layers that got none.
#include <algorithm>

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
    bool said = !log;
    model::eachTrained(file, [&](const model::Trained& trained) {
      if (!said) LOG_INFO("Finetuning from {}", file), said = true;
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

void copyTrainedFiles(Net& net, const std::string& list) {
  const auto files = splitList(list);
  if (files.empty()) invalid("the weights '{}' name no file; name one or more .caffemodel files", list);
  copyTrainedFiles(net, files);
}

}  // namespace crema::net
