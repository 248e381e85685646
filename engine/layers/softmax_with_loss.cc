// SoftmaxWithLoss: cross entropy of the softmax p of bottom 0 and the class numbers in bottom 1:
//   loss = -sum log(max(p[label], FLT_MIN)) / N;  dx = (p - 1[label]) * weight / N, 0 where the label is ignored
// N (loss_param.normalization): FULL all positions, VALID (default) those not ignored, BATCH_SIZE the product of the
// axes before `axis`, NONE 1; at least 1. The old `normalize` means VALID (true) or BATCH_SIZE (false) when
// `normalization` is not given. Options: softmax_param.axis, loss_param.ignore_label. A second top is the softmax
// (Caffe documents it, and fails).
#include <cfloat>
#include <cmath>

#include "layers/builtin.h"
#include "layers/loss_layer.h"

namespace crema {
namespace {

class SoftmaxWithLoss : public SoftmaxLossLayer {
 public:
  using SoftmaxLossLayer::SoftmaxLossLayer;

 protected:
  void configure(const Blobs& bottom, const Blobs& top) override {
    useAxis(bottom, top, param_.softmax_param().axis());
  }
  void compute(const Blobs& bottom, const Blobs& top) override {
    withType(context().dtype, [&]<class T>() {
      softmax<T>(bottom, top);
      double loss = 0;
      valid_ = 0;
      grid_.forEach<T>(*bottom[1], param_.loss_param(), [&](int64_t first, int label) {
        loss -= std::log(std::max(
            static_cast<double>(prob_.data<T>()[first + static_cast<int64_t>(label) * grid_.inner]), double{FLT_MIN}));
        ++valid_;
      });
      top[0]->mutableData<T>()[0] = static_cast<T>(loss / divisor());
    });
  }
  void gradient(const Blobs& top, const std::vector<bool>& down, const Blobs& bottom) override {
    if (!down[0]) return;
    withType(context().dtype, [&]<class T>() {
      T* dx = bottom[0]->mutableDiff<T>();
      const T scale = static_cast<T>(top[0]->diff<T>()[0] / divisor());
      std::fill_n(dx, bottom[0]->count(), T(0));
      grid_.forEach<T>(*bottom[1], param_.loss_param(), [&](int64_t first, int label) {
        for (int c = 0; c < grid_.classes; ++c) {
          const int64_t i = first + static_cast<int64_t>(c) * grid_.inner;
          dx[i] = (prob_.data<T>()[i] - (c == label ? T(1) : T(0))) * scale;
        }
      });
    });
  }
};

}  // namespace

void addSoftmaxWithLoss(LayerRegistry& r) {
  r.add<SoftmaxWithLoss>("SoftmaxWithLoss", "cross entropy after a softmax");
}

}  // namespace crema
