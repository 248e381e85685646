// Layers of type Python: the host makes an object for each while the net is built, and computes every pass by a
// callback.
#include "api/handles.h"

namespace crema::api {
namespace {

std::atomic<const crema_layer_host*> installed{nullptr};

class HostLayer;

}  // namespace
}  // namespace crema::api

struct crema_layer {
  crema::api::HostLayer& layer;
  const crema::layers::Blobs &bottoms, &tops;
};

namespace crema::api {
namespace {

const crema_layer_host& host() {
  const crema_layer_host* h = installed;
  if (!h) invalid("Python layers need Python: the program that loaded this library has set no host for them");
  return *h;
}

class HostLayer : public layers::Layer {
 public:
  using layers::Layer::Layer;
  static constexpr int kAny = -1;
  Arity arity() const override { return {0, kAny, 0, kAny}; }
  bool allowsInPlace() const override { return true; }
  int64_t instance() const { return instance_; }
  bool training() const { return layers::Layer::training(); }
  Blob& addBlob(const Shape& shape) {
    addParam(shape, caffe::FillerParameter());  // zeros, or the blobs that the description carries
    return *params().back();
  }

 protected:
  void configure(const layers::Blobs& bottom, const layers::Blobs& top) override {
    crema_layer handle{*this, bottom, top};
    ask(host().make(host().user, &handle, &instance_));
  }
  void reshape(const layers::Blobs&, const layers::Blobs&) override {
    ask(host().run(host().user, instance_, CREMA_RESHAPE, nullptr));
  }
  void compute(const layers::Blobs&, const layers::Blobs&) override {
    ask(host().run(host().user, instance_, CREMA_FORWARD, nullptr));
  }
  void gradient(const layers::Blobs&, const std::vector<bool>& propagateDown, const layers::Blobs&) override {
    const std::vector<int> down(propagateDown.begin(), propagateDown.end());
    ask(host().run(host().user, instance_, CREMA_BACKWARD, down.data()));
  }

 private:
  int64_t instance_ = -1;
};

int giveBlob(const layers::Blobs& from, int i, crema_blob** made) {
  return guard([&] {
    if (i < 0 || static_cast<size_t>(i) >= from.size()) invalid("the layer has no such blob: {} of {}", i, from.size());
    *made = newBlob(*from[static_cast<size_t>(i)], nullptr);
  });
}

}  // namespace

const layers::LayerRegistry& hostRegistry() {
  static const layers::LayerRegistry registry = [] {
    layers::LayerRegistry r = layers::builtinLayers();
    r.replace("Python",
              [](const caffe::LayerParameter& p, const layers::LayerContext& c) -> std::unique_ptr<layers::Layer> {
                return std::make_unique<HostLayer>(p, c);
              });
    return r;
  }();
  return registry;
}

int64_t instanceOf(const layers::Layer& layer) {
  const auto* hosted = dynamic_cast<const HostLayer*>(&layer);
  return hosted ? hosted->instance() : -1;
}

}  // namespace crema::api

using namespace crema;
using namespace crema::api;

int crema_set_layer_host(const crema_layer_host* host) {
  return guard([&] {
    static crema_layer_host kept;
    if (host) {
      checkSize("crema_layer_host", host->size, sizeof kept);
      kept = *host;
    }
    installed = host ? &kept : nullptr;
  });
}

const char* crema_layer_text(const crema_layer* layer, crema_layer_string which) {
  const caffe::LayerParameter& p = layer->layer.param();
  switch (which) {
    case CREMA_LAYER_NAME:
      return p.name().c_str();
    case CREMA_LAYER_MODULE:
      return p.python_param().module().c_str();
    case CREMA_LAYER_CLASS:
      return p.python_param().layer().c_str();
    case CREMA_LAYER_PARAM_STR:
      return p.python_param().param_str().c_str();
  }
  return nullptr;
}

int crema_layer_phase(const crema_layer* layer) { return layer->layer.training() ? caffe::TRAIN : caffe::TEST; }
int crema_layer_bottoms(const crema_layer* layer) { return static_cast<int>(layer->bottoms.size()); }
int crema_layer_tops(const crema_layer* layer) { return static_cast<int>(layer->tops.size()); }

int crema_layer_bottom(const crema_layer* layer, int i, crema_blob** made) { return giveBlob(layer->bottoms, i, made); }
int crema_layer_top(const crema_layer* layer, int i, crema_blob** made) { return giveBlob(layer->tops, i, made); }

int crema_layer_add_blob(crema_layer* layer, int axes, const int* dims, crema_blob** made) {
  return guard([&] {
    if (axes < 0 || axes > 32) invalid("a blob has 0 to 32 axes, not {}", axes);
    *made = newBlob(layer->layer.addBlob(Shape(std::vector<int>(dims, dims + axes))), nullptr, true);
  });
}
