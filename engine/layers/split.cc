// Split: every top is the bottom (shared memory); dx = sum of the tops' gradients, first to last. Net inserts it where
// one blob has several readers. A top that its reader needs again in the backward pass is a copy where a layer in place
// overwrites the shared memory (net/memory_use.h).
#include "layers/builtin.h"
#include "layers/sum_group.h"

namespace crema::layers {
namespace {

class Split : public Layer, public SumFollower {
 public:
  using Layer::Layer;
  Arity arity() const override { return {1, 1, 1, -1}; }
  Reads readsBackward() const override { return {.bottoms = false, .tops = false}; }
  bool followSum(const Blobs&, const Blobs& top, SumSteps*) const override {
    return top.size() == 2 && context().memory.ownTops.empty();
  }

 protected:
  void reshape(const Blobs& bottom, const Blobs& top) override {
    for (size_t i = 0; i < top.size(); ++i) {
      if (top[i] == bottom[0]) invalid("Split cannot work in place; give every top a name of its own");
      top[i]->reshape(bottom[0]->shape());
      if (!copied(i)) top[i]->shareData(*bottom[0]);
    }
  }
  void compute(const Blobs& bottom, const Blobs& top) override {
    for (size_t i = 0; i < top.size(); ++i)
      if (copied(i)) top[i]->copyDataFrom(*bottom[0]);
  }
  void gradient(const Blobs& top, const std::vector<bool>& down, const Blobs& bottom) override {
    if (!down[0]) return;
    withType(context().dtype, [&]<class T>() {
      T* dx = bottom[0]->mutableDiff<T>();
      if (top.size() == 1) return bottom[0]->copyDiffFrom(*top[0]);
      kernels::add<T>(kernels(), bottom[0]->count(), top[0]->diff<T>(), top[1]->diff<T>(), dx);
      for (size_t i = 2; i < top.size(); ++i) kernels::add<T>(kernels(), bottom[0]->count(), dx, top[i]->diff<T>(), dx);
    });
  }

 private:
  bool copied(size_t top) const { return context().memory.ownTops.count(static_cast<int>(top)) > 0; }
};

}  // namespace

void addSplit(LayerRegistry& r) { r.add<Split>("Split", "one blob for several readers", TopMemory::kOfBottom); }

}  // namespace crema::layers
