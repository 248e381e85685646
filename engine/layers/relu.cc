// ReLU: y = max(x, 0) + negative_slope * min(x, 0);  dx = dy * (x > 0 ? 1 : negative_slope), so the gradient at 0 is
// the slope. In place with negative_slope >= 0 the sign of y is the sign of x, and x is kept only where a later layer
// in place changes signs (a Dropout does not matter: dy is 0 where it writes zeros); with a slope below 0 a copy of x
// is kept.
#include "layers/builtin.h"
#include "layers/elementwise.h"
#include "layers/norm_group.h"
#include "layers/sum_group.h"

namespace crema::layers {
namespace {

class ReLU : public SameShapeLayer, public NormFollower, public SumFollower {
 public:
  using SameShapeLayer::SameShapeLayer;
  Reads readsBackward() const override { return {.bottoms = true, .tops = false}; }
  bool isStep(const Blobs&, int) const override { return context().dtype == DType::kFloat32; }
  bool follow(const Blobs&, kernels::NormSteps<float>* steps) const override {
    // A group knows its values; by itself the layer sees those that a Dropout in place has set to zero since.
    if (steps->rectified || context().memory.overwriters.count("Dropout")) return false;
    return steps->rectified = true, steps->slope = slope<float>(), true;
  }
  bool followSum(const Blobs& bottom, const Blobs& top, SumSteps* steps) const override {
    if (steps->rectified || keeps_ || top[0] != bottom[0]) return false;
    return steps->rectified = true, steps->slope = slope<float>(), true;
  }

 protected:
  void configure(const Blobs&, const Blobs&) override {
    keeps_ = param_.relu_param().negative_slope() < 0;
    for (const std::string& type : context().memory.overwriters) keeps_ |= type != "ReLU" && type != "Dropout";
  }
  void compute(const Blobs& bottom, const Blobs& top) override {
    if (keeps_) keepBottom(bottom, top);
    withType(context().dtype, [&]<class T>() {
      kernels::reluForward<T>(kernels(), bottom[0]->count(), slope<T>(), bottom[0]->data<T>(),
                              top[0]->mutableData<T>());
    });
  }
  void steps(const Blobs&, int, kernels::Epilogue<float>* steps) override {
    steps->push_back({.kind = kernels::Step<float>::kRelu, .slope = slope<float>()});
  }
  void gradient(const Blobs& top, const std::vector<bool>& down, const Blobs& bottom) override {
    if (!down[0]) return;
    withType(context().dtype, [&]<class T>() {
      const T* x = keeps_ ? bottomBefore<T>(bottom, top) : bottom[0]->data<T>();
      kernels::reluBackward<T>(kernels(), bottom[0]->count(), slope<T>(), x, top[0]->diff<T>(),
                               bottom[0]->mutableDiff<T>());
    });
  }

 private:
  template <class T>
  T slope() const {
    return static_cast<T>(param_.relu_param().negative_slope());
  }
  bool keeps_ = false;
};

}  // namespace

void addReLU(LayerRegistry& r) { r.add<ReLU>("ReLU", "rectified linear unit"); }

}  // namespace crema::layers
