// SigmoidCrossEntropyLoss: cross entropy of s = 1 / (1 + exp(-x)) and targets t in [0, 1], each value separately:
//   loss = sum (max(x, 0) - x t + log(1 + exp(-|x|))) / N;  dx = (s - t) weight / N, 0 where the target is ignored
// N (loss_param.normalization): BATCH_SIZE (the default here) the first axis, VALID the values not ignored, FULL all
// values, NONE 1; at least 1; the old `normalize`: labels.h. A target whose integer part is loss_param.ignore_label
// does not count.
#include <cmath>

#include "layers/builtin.h"
#include "layers/logistic.h"
#include "layers/loss_layer.h"

namespace crema::layers {
namespace {

class SigmoidCrossEntropyLoss : public LossLayer {
 public:
  using LossLayer::LossLayer;
  const char* withoutGradient(int bottom) const override { return bottom == 0 ? nullptr : "targets"; }

 protected:
  void reshape(const Blobs& bottom, const Blobs& top) override {
    const Shape &x = bottom[0]->shape(), &t = bottom[1]->shape();
    if (x.axes() == 0 || x.count() != t.count())
      invalid("SIGMOID_CROSS_ENTROPY_LOSS layer inputs must have the same count: bottom 0 is {}, bottom 1 is {}",
              x.brief(), t.brief());
    items_ = x[0], row_ = x.count(1);
    top[0]->reshape(Shape{});
  }
  void compute(const Blobs& bottom, const Blobs& top) override {
    withType(context().dtype, [&]<class T>() {
      const T *x = bottom[0]->data<T>(), *t = bottom[1]->data<T>();
      std::vector<double> sums(static_cast<size_t>(items_), 0.0);
      std::vector<int64_t> counted(sums.size(), 0);
      kernels().pool().run(items_, [&](int n, int) {
        double sum = 0;
        for (int64_t i = n * row_; i < (n + 1) * row_; ++i) {
          if (ignored(t[i])) continue;
          if (!std::isfinite(t[i])) badItem(n, "target {} of item {} is no number", t[i], n);
          const double v = x[i];
          sum += std::max(v, 0.0) - v * t[i] + std::log1p(std::exp(-std::fabs(v)));
          ++counted[static_cast<size_t>(n)];
        }
        sums[static_cast<size_t>(n)] = sum;
      });
      double loss = 0;
      valid_ = 0;
      for (size_t n = 0; n < sums.size(); ++n) loss += sums[n], valid_ += counted[n];
      top[0]->mutableData<T>()[0] = static_cast<T>(loss / divisor());
    });
  }
  void gradient(const Blobs& top, const std::vector<bool>& down, const Blobs& bottom) override {
    if (!down[0]) return;
    withType(context().dtype, [&]<class T>() {
      const T *x = bottom[0]->data<T>(), *t = bottom[1]->data<T>();
      T* dx = bottom[0]->mutableDiff<T>();
      const T scale = static_cast<T>(top[0]->diff<T>()[0] / divisor());
      kernels().pool().run(items_, [&](int n, int) {
        for (int64_t i = n * row_; i < (n + 1) * row_; ++i)
          dx[i] = ignored(t[i]) ? T(0) : (logistic(x[i]) - t[i]) * scale;
      });
    });
  }

 private:
  template <class T>
  bool ignored(T target) const {
    const auto& p = param_.loss_param();
    return p.has_ignore_label() && std::trunc(target) == static_cast<T>(p.ignore_label());
  }
  double divisor() const {
    return lossDivisor(param_.loss_param(), caffe::LossParameter::BATCH_SIZE,
                       static_cast<double>(items_) * static_cast<double>(row_), static_cast<double>(valid_), items_);
  }
  int items_ = 0;
  int64_t row_ = 0, valid_ = 0;
};

}  // namespace

void addSigmoidCrossEntropyLoss(LayerRegistry& r) {
  r.add<SigmoidCrossEntropyLoss>("SigmoidCrossEntropyLoss", "cross entropy of independent yes-or-no answers");
}

}  // namespace crema::layers
