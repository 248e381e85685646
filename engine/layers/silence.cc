// Silence: reads any blobs and has no tops, so that they are not outputs of the net. dx = 0.
#include "layers/builtin.h"

namespace crema::layers {
namespace {

class Silence : public Layer {
 public:
  using Layer::Layer;
  Arity arity() const override { return {1, -1, 0, 0}; }

 protected:
  void reshape(const Blobs&, const Blobs&) override {}
  void compute(const Blobs&, const Blobs&) override {}
  void gradient(const Blobs&, const std::vector<bool>& down, const Blobs& bottom) override {
    for (size_t i = 0; i < bottom.size(); ++i)
      if (down[i]) bottom[i]->fillDiff(0);
  }
};

}  // namespace

void addSilence(LayerRegistry& r) { r.add<Silence>("Silence", "swallows blobs that nobody reads"); }

}  // namespace crema::layers
