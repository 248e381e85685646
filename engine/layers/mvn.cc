// MVN (mean and variance normalisation): each plane of each item (axes 2 on), or with across_channels each item (axes 1
// on), gets mean 0 and, with normalize_variance, standard deviation 1. With n elements, z = x - mean(x), s =
// sqrt(mean(z^2)):
//   y = z / (s + eps);  dx = (dy - mean(dy)) / (s + eps) - z mean(dy z) / (s (s + eps)^2), last term 0 where s = 0
//   without variance: y = z, dx = dy - mean(dy)
// eps stands outside the root, as in Caffe. (Caffe's gradient has s + eps for s in the last term, which is not the
// derivative, but nearly equal for small eps.) Any number of axes; missing ones count as 1. In place allowed (Caffe's
// gradient is wrong there).
// Options (mvn_param): normalize_variance (true), across_channels (false), eps (1e-9).
#include <algorithm>
#include <cmath>
#include <vector>

#include "layers/builtin.h"
#include "layers/elementwise.h"

namespace crema::layers {
namespace {

class Mvn : public SameShapeLayer {
 public:
  using SameShapeLayer::SameShapeLayer;

 protected:
  void configure(const Blobs&, const Blobs&) override {
    if (!(param_.mvn_param().eps() >= 0))
      invalid("mvn_param: eps must not be negative, it is {}", param_.mvn_param().eps());
  }
  void reshape(const Blobs& bottom, const Blobs& top) override {
    SameShapeLayer::reshape(bottom, top);
    const Shape& x = bottom[0]->shape();
    const int axis = std::min(x.axes(), param_.mvn_param().across_channels() ? 1 : 2);
    rows_ = {1, x.count(0, axis), x.count(axis)};
    mean_.resize(static_cast<size_t>(rows_.channels)), deviation_.resize(mean_.size());
  }
  void compute(const Blobs& bottom, const Blobs& top) override {
    keepBottom(bottom, top);
    const double n = std::max(1, rows_.inner), eps = param_.mvn_param().eps();
    withType(context().dtype, [&]<class T>() {
      const T* x = bottom[0]->data<T>();
      T* y = top[0]->mutableData<T>();
      eachRow(kernels().pool(), rows_, [&](int r, int64_t from, int64_t to) {
        const double mean = sumOf(from, to, [&](int64_t i) { return x[i]; }) / n;
        const double s = std::sqrt(sumOf(from, to, [&](int64_t i) { return (x[i] - mean) * (x[i] - mean); }) / n);
        const double factor = scaled() ? 1 / (s + eps) : 1;
        for (int64_t i = from; i < to; ++i) y[i] = s == 0 ? T(0) : static_cast<T>((x[i] - mean) * factor);
        mean_[static_cast<size_t>(r)] = mean, deviation_[static_cast<size_t>(r)] = s;
      });
    });
  }
  void gradient(const Blobs& top, const std::vector<bool>& down, const Blobs& bottom) override {
    if (!down[0]) return;
    const double n = std::max(1, rows_.inner), eps = param_.mvn_param().eps();
    withType(context().dtype, [&]<class T>() {
      const T *x = bottomBefore<T>(bottom, top), *dy = top[0]->diff<T>();
      T* dx = bottom[0]->mutableDiff<T>();
      eachRow(kernels().pool(), rows_, [&](int r, int64_t from, int64_t to) {
        const double mean = mean_[static_cast<size_t>(r)], s = deviation_[static_cast<size_t>(r)];
        const double factor = scaled() ? 1 / (s + eps) : 1;
        const double ofDy = sumOf(from, to, [&](int64_t i) { return dy[i]; }) / n;
        const double ofBoth = sumOf(from, to, [&](int64_t i) { return dy[i] * (x[i] - mean); }) / n;
        const double back = scaled() && s != 0 ? ofBoth * factor * factor / s : 0;
        for (int64_t i = from; i < to; ++i) dx[i] = static_cast<T>((dy[i] - ofDy) * factor - (x[i] - mean) * back);
      });
    });
  }

 private:
  bool scaled() const { return param_.mvn_param().normalize_variance(); }
  Channels rows_;
  std::vector<double> mean_, deviation_;
};

}  // namespace

void addMVN(LayerRegistry& r) { r.add<Mvn>("MVN", "mean 0 and deviation 1 for each item or plane"); }

}  // namespace crema::layers
