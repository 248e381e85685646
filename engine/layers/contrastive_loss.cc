// ContrastiveLoss (Hadsell, Chopra & LeCun 2006) of pairs a, b of N x ... values, y = 1 for similar pairs:
//   d = |a - b|;  loss = sum (y d^2 + (1 - y) max(margin - d, 0)^2) / (2 N)
//   da = (a - b) weight / N where y;  -(margin - d) / (d + 1e-4) (a - b) weight / N where not and d < margin;  db = -da
// The 1e-4 is Caffe's: it keeps the gradient defined where a = b. legacy_version: max(margin - d^2, 0), not squared,
// with da = -(a - b) weight / N. Bottom 2: y, N numbers, truncated to integers; 0 means dissimilar. Options
// (contrastive_loss_param): margin (1), legacy_version.
#include <cmath>

#include "layers/builtin.h"
#include "layers/loss_layer.h"

namespace crema::layers {
namespace {

class ContrastiveLoss : public LossLayer {
 public:
  using LossLayer::LossLayer;
  Arity arity() const override { return {3, 3, 1, 1, false, true}; }
  const char* withoutGradient(int bottom) const override { return bottom < 2 ? nullptr : "answers"; }

 protected:
  void reshape(const Blobs& bottom, const Blobs& top) override {
    const Shape &a = bottom[0]->shape(), &b = bottom[1]->shape(), &y = bottom[2]->shape();
    if (a.axes() == 0 || b.axes() == 0 || a[0] != b[0] || a.count() != b.count())
      invalid("bottoms 0 and 1 are pairs and need one shape: {} and {}", a.brief(), b.brief());
    if (y.count() != a[0])
      invalid("{} pairs need {} numbers that say which belong together, bottom 2 is {}", a[0], a[0], y.brief());
    items_ = a[0], row_ = a.count(1);
    squares_.resize(static_cast<size_t>(items_));
    top[0]->reshape(Shape{});
  }
  void compute(const Blobs& bottom, const Blobs& top) override {
    withType(context().dtype, [&]<class T>() {
      const T *a = bottom[0]->data<T>(), *b = bottom[1]->data<T>();
      double loss = 0;
      for (int n = 0; n < items_; ++n) {
        double square = 0;
        for (int64_t i = n * row_; i < (n + 1) * row_; ++i)
          square += (static_cast<double>(a[i]) - b[i]) * (static_cast<double>(a[i]) - b[i]);
        squares_[static_cast<size_t>(n)] = square;
        loss += together(*bottom[2], n) ? square : apart(square);
      }
      top[0]->mutableData<T>()[0] = static_cast<T>(loss / 2 / std::max(1, items_));
    });
  }
  void gradient(const Blobs& top, const std::vector<bool>& down, const Blobs& bottom) override {
    withType(context().dtype, [&]<class T>() {
      const T *a = bottom[0]->data<T>(), *b = bottom[1]->data<T>();
      const double weight = static_cast<double>(top[0]->diff<T>()[0]) / std::max(1, items_);
      for (size_t side = 0; side < 2; ++side) {
        if (!down[side]) continue;
        T* dx = bottom[side]->mutableDiff<T>();
        for (int n = 0; n < items_; ++n) {
          const double scale =
              (side ? -weight : weight) * slope(together(*bottom[2], n), squares_[static_cast<size_t>(n)]);
          for (int64_t i = n * row_; i < (n + 1) * row_; ++i)
            dx[i] = static_cast<T>(scale * (static_cast<double>(a[i]) - b[i]));
        }
      }
    });
  }

 private:
  bool legacy() const { return param_.contrastive_loss_param().legacy_version(); }
  double margin() const { return param_.contrastive_loss_param().margin(); }
  bool together(const Blob& y, int n) const {
    const double value = y.dataAt(n);
    if (!std::isfinite(value)) badItem(n, "bottom 2 says {} of pair {}; 1 (together) or 0 (apart) is needed", value, n);
    return std::trunc(value) != 0;
  }
  double apart(double square) const {
    const double missing = std::max(margin() - (legacy() ? square : std::sqrt(square)), 0.0);
    return legacy() ? missing : missing * missing;
  }
  double slope(bool together, double square) const {
    if (together) return 1;
    if (legacy()) return margin() > square ? -1 : 0;
    const double d = std::sqrt(square);
    return margin() > d ? -(margin() - d) / (d + 1e-4) : 0;
  }
  int items_ = 0;
  int64_t row_ = 0;
  std::vector<double> squares_;  // d^2
};

}  // namespace

void addContrastiveLoss(LayerRegistry& r) {
  r.add<ContrastiveLoss>("ContrastiveLoss", "pairs that belong together near, others apart");
}

}  // namespace crema::layers
