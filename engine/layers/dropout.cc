// Dropout (Srivastava et al. 2014), inverted: TRAIN y = x m / (1 - p), m ~ Bernoulli(1 - p); TEST y = x. dx = dy m / (1
// - p). The mask of element i is number i of the stream of (seed, layer, step, rank): the same for any thread and
// worker count. Options (dropout_param): dropout_ratio p, 0 <= p < 1.
#include <algorithm>
#include <array>

#include "layers/builtin.h"
#include "layers/loops.h"

namespace crema::layers {
namespace {

class Dropout : public Layer {
 public:
  Dropout(const caffe::LayerParameter& p, const LayerContext& c) : Layer(p, c), mask_(c.dtype) {}
  bool allowsInPlace() const override { return true; }
  bool isStep(const Blobs&, int) const override { return !training(); }  // none: y = x
  Reads readsBackward() const override { return {.bottoms = false, .tops = false}; }

 protected:
  void configure(const Blobs&, const Blobs&) override {
    const float p = param_.dropout_param().dropout_ratio();
    if (!(p >= 0 && p < 1)) invalid("dropout_ratio must be in [0, 1), not {}", p);
  }
  void reshape(const Blobs& bottom, const Blobs& top) override {
    if (top[0] != bottom[0]) top[0]->reshape(bottom[0]->shape());
    mask_.reshape(bottom[0]->shape());
  }
  void compute(const Blobs& bottom, const Blobs& top) override {
    withType(context().dtype, [&]<class T>() {
      if (!training()) {
        if (top[0] != bottom[0]) top[0]->copyDataFrom(*bottom[0]);
        return;
      }
      mask<T>(bottom[0]->data<T>(), top[0]->mutableData<T>());
    });
  }
  void gradient(const Blobs& top, const std::vector<bool>& down, const Blobs& bottom) override {
    if (!down[0]) return;
    withType(context().dtype, [&]<class T>() {
      if (training()) {
        kernels::multiply<T>(kernels(), top[0]->count(), top[0]->diff<T>(), mask_.data<T>(),
                             bottom[0]->mutableDiff<T>());
      } else if (top[0] != bottom[0]) {
        bottom[0]->copyDiffFrom(*top[0]);
      }
    });
  }

 private:
  // Draws the mask and applies it to x, which may be y.
  template <class T>
  void mask(const T* x, T* y) {
    const double ratio = param_.dropout_param().dropout_ratio();
    const auto dropBelow = static_cast<uint64_t>(ratio * 4294967296.0);
    // A table instead of a branch: branching on random words would take three times as long as drawing them.
    const std::array<T, 2> factors = {T(0), static_cast<T>(1 / (1 - ratio))};
    const RandomStream stream = random(RandomPurpose::kDropout);
    T* mask = mask_.mutableData<T>();
    static_assert(kPiece % 4 == 0, "a piece begins with a block of the stream");
    inPieces(kernels().pool(), mask_.count(), [=](int64_t from, int64_t to) {
      for (int64_t i = from; i < to; i += 4) {
        const auto words = stream.block(static_cast<uint64_t>(i / 4));
        for (int64_t j = i; j < std::min(i + 4, to); ++j) {
          mask[j] = factors[words[static_cast<size_t>(j - i)] >= dropBelow];
          y[j] = x[j] * mask[j];
        }
      }
    });
  }

  Blob mask_;
};

}  // namespace

void addDropout(LayerRegistry& r) { r.add<Dropout>("Dropout", "random zeros while training"); }

}  // namespace crema::layers
