// SoftmaxWithLoss: cross entropy of the softmax p of bottom 0 and the class numbers in bottom 1:
//   loss = -sum log(max(p[label], FLT_MIN)) / N;  dx = (p - 1[label]) * weight / N, 0 where the label is ignored
// N (loss_param.normalization): FULL all positions, VALID (default) those not ignored, BATCH_SIZE the product of the
// axes before `axis`, NONE 1; at least 1. The old `normalize` means VALID (true) or BATCH_SIZE (false) when
// `normalization` is not given. Options: softmax_param.axis, loss_param.ignore_label. A second top is the softmax
// (Caffe documents it, and fails).
#include <cfloat>
#include <cmath>

#include "layers/builtin.h"
#include "layers/labels.h"

namespace crema {
namespace {

class SoftmaxWithLoss : public Layer {
 public:
  SoftmaxWithLoss(const caffe::LayerParameter& p, const LayerContext& c) : Layer(p, c), prob_(c.dtype) {}
  Arity arity() const override { return {2, 2, 1, 2, false, true}; }
  bool isLoss() const override { return true; }
  bool allowsForceBackward(int bottom) const override { return bottom == 0; }

 protected:
  void configure(const Blobs& bottom, const Blobs& top) override {
    axis_ = bottom[0]->shape().canonicalAxis(param_.softmax_param().axis());
    firstTopIsTheLoss(param_, top.size());
  }
  void reshape(const Blobs& bottom, const Blobs& top) override {
    const Shape& s = bottom[0]->shape();
    grid_ = LabelGrid(s, axis_, bottom[1]->shape());
    prob_.reshape(s);
    top[0]->reshape(Shape{});
    if (top.size() > 1) top[1]->reshape(s);
  }
  void compute(const Blobs& bottom, const Blobs& top) override {
    withType(context().dtype, [&]<class T>() {
      kernels::softmax<T>(kernels(), grid_.outer, grid_.classes, grid_.inner, bottom[0]->data<T>(),
                          prob_.mutableData<T>());
      double loss = 0;
      int valid = 0;
      grid_.forEach<T>(*bottom[1], param_.loss_param(), [&](int64_t first, int label) {
        loss -= std::log(std::max(
            static_cast<double>(prob_.data<T>()[first + static_cast<int64_t>(label) * grid_.inner]), double{FLT_MIN}));
        ++valid;
      });
      valid_ = valid;
      top[0]->mutableData<T>()[0] = static_cast<T>(loss / divisor());
      if (top.size() > 1) top[1]->copyDataFrom(prob_);
    });
  }
  void gradient(const Blobs& top, const std::vector<bool>& down, const Blobs& bottom) override {
    if (down[1])
      invalid("SoftmaxWithLoss has no gradient for its labels (bottom 1); set propagate_down to false there");
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

 private:
  double divisor() const {
    return lossDivisor(param_.loss_param(), caffe::LossParameter::VALID, static_cast<double>(grid_.outer) * grid_.inner,
                       valid_, grid_.outer);
  }

  int axis_ = 1, valid_ = 0;
  LabelGrid grid_;
  Blob prob_;
};

}  // namespace

void addSoftmaxWithLoss(LayerRegistry& r) {
  r.add<SoftmaxWithLoss>("SoftmaxWithLoss", "cross entropy after a softmax");
}

}  // namespace crema
