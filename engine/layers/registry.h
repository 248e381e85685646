// Layer types by name. A registry is a value: copy it to add a type without changing the built-in one.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "layers/layer.h"

namespace crema::layers {

// Whose memory the tops are in: their own, or that of the first bottom, as no value changes (Reshape).
enum class TopMemory { kOwn, kOfBottom };

class LayerRegistry {
 public:
  using Maker = std::function<std::unique_ptr<Layer>(const caffe::LayerParameter&, const LayerContext&)>;
  struct Entry {
    Maker make;
    std::string summary;  // one line for lists and manuals
    TopMemory memory = TopMemory::kOwn;
  };

  // Internal error when the name is taken.
  void add(const std::string& type, std::string summary, Maker make, TopMemory memory = TopMemory::kOwn);
  void replace(const std::string& type, Maker make);  // of an existing type
  template <class L>
  void add(const std::string& type, std::string summary, TopMemory memory = TopMemory::kOwn) {
    const Maker make = [](const caffe::LayerParameter& p, const LayerContext& c) { return std::make_unique<L>(p, c); };
    add(type, std::move(summary), make, memory);
  }
  [[nodiscard]] std::unique_ptr<Layer> make(const caffe::LayerParameter& param, const LayerContext& context) const;
  bool knows(const std::string& type) const { return entries_.count(type) > 0; }
  bool sharesMemory(const std::string& type) const;  // its tops with its bottom; false for unknown types
  const std::map<std::string, Entry>& entries() const { return entries_; }

 private:
  std::map<std::string, Entry> entries_;
};

const LayerRegistry& builtinLayers();  // every type of this library (builtin.cc)

}  // namespace crema::layers
