// Split: every top is the bottom (shared memory); dx = sum of the tops' gradients, first to last. Net inserts it where
// one blob has several readers.
#include "layers/builtin.h"

namespace crema {
namespace {

class Split : public Layer {
 public:
  using Layer::Layer;
  Arity arity() const override { return {1, 1, 1, -1}; }

 protected:
  void reshape(const Blobs& bottom, const Blobs& top) override {
    for (Blob* t : top) {
      if (t == bottom[0]) invalid("Split cannot work in place; give every top a name of its own");
      t->reshape(bottom[0]->shape());
      t->shareData(*bottom[0]);
    }
  }
  void compute(const Blobs&, const Blobs&) override {}
  void gradient(const Blobs& top, const std::vector<bool>& down, const Blobs& bottom) override {
    if (!down[0]) return;
    withType(context().dtype, [&]<class T>() {
      T* dx = bottom[0]->mutableDiff<T>();
      if (top.size() == 1) return bottom[0]->copyDiffFrom(*top[0]);
      kernels::add<T>(kernels(), bottom[0]->count(), top[0]->diff<T>(), top[1]->diff<T>(), dx);
      for (size_t i = 2; i < top.size(); ++i) kernels::add<T>(kernels(), bottom[0]->count(), dx, top[i]->diff<T>(), dx);
    });
  }
};

}  // namespace

void addSplit(LayerRegistry& r) { r.add<Split>("Split", "one blob for several readers"); }

}  // namespace crema
