// Threshold: y = 1 where x > threshold, else 0. It has no gradient, so a loss above it cannot train layers below it.
// In place allowed. Options (threshold_param): threshold (0).
#include "layers/builtin.h"
#include "layers/elementwise.h"

namespace crema::layers {
namespace {

class Threshold : public SameShapeLayer {
 public:
  using SameShapeLayer::SameShapeLayer;
  const char* withoutGradient(int) const override { return "values"; }

 protected:
  void compute(const Blobs& bottom, const Blobs& top) override {
    withType(context().dtype, [&]<class T>() {
      const auto threshold = static_cast<T>(param_.threshold_param().threshold());
      const T* x = bottom[0]->data<T>();
      T* y = top[0]->mutableData<T>();
      inPieces(kernels().pool(), bottom[0]->count(), [=](int64_t from, int64_t to) {
        for (int64_t i = from; i < to; ++i) y[i] = T(x[i] > threshold);
      });
    });
  }
  void gradient(const Blobs&, const std::vector<bool>&, const Blobs&) override {}
};

}  // namespace

void addThreshold(LayerRegistry& r) { r.add<Threshold>("Threshold", "1 above a threshold, else 0"); }

}  // namespace crema::layers
