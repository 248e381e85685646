// EuclideanLoss: half the mean squared distance of two bottoms with as many values:
//   loss = sum (a - b)^2 / (2 N), N the first axis;  da = (a - b) weight / N,  db = -da
#include "layers/builtin.h"
#include "layers/loss_layer.h"

namespace crema::layers {
namespace {

class EuclideanLoss : public LossLayer {
 public:
  EuclideanLoss(const caffe::LayerParameter& p, const LayerContext& c) : LossLayer(p, c), difference_(c.dtype) {}
  const char* withoutGradient(int) const override { return nullptr; }

 protected:
  void reshape(const Blobs& bottom, const Blobs& top) override {
    const Shape &a = bottom[0]->shape(), &b = bottom[1]->shape();
    if (a.axes() == 0 || b.axes() == 0 || a[0] != b[0] || a.count() != b.count())
      invalid(
          "Inputs must have the same dimension: bottom 0 is {}, bottom 1 is {}; give the layer below the num_output of "
          "the other",
          a.brief(), b.brief());
    difference_.reshape(a);
    top[0]->reshape(Shape{});
  }
  void compute(const Blobs& bottom, const Blobs& top) override {
    withType(context().dtype, [&]<class T>() {
      const T *a = bottom[0]->data<T>(), *b = bottom[1]->data<T>();
      T* d = difference_.mutableData<T>();
      eachItem([&](int64_t i) { d[i] = a[i] - b[i]; });
      top[0]->mutableData<T>()[0] =
          static_cast<T>(kernels::sumOfSquares<T>(kernels(), difference_.count(), d) / (2 * items()));
    });
  }
  void gradient(const Blobs& top, const std::vector<bool>& down, const Blobs& bottom) override {
    withType(context().dtype, [&]<class T>() {
      const T scale = static_cast<T>(top[0]->diff<T>()[0] / items());
      const T* d = difference_.data<T>();
      for (size_t k = 0; k < 2; ++k) {
        if (!down[k]) continue;
        T* dx = bottom[k]->mutableDiff<T>();
        eachItem([&, signedScale = k ? -scale : scale](int64_t i) { dx[i] = signedScale * d[i]; });
      }
    });
  }

 private:
  double items() const { return std::max(1, difference_.shape()[0]); }
  template <class Use>
  void eachItem(Use use) {
    const int64_t row = difference_.shape().count(1);
    kernels().pool().run(difference_.shape()[0], [&](int n, int) {
      for (int64_t i = n * row; i < (n + 1) * row; ++i) use(i);
    });
  }
  Blob difference_;
};

}  // namespace

void addEuclideanLoss(LayerRegistry& r) { r.add<EuclideanLoss>("EuclideanLoss", "half the mean squared distance"); }

}  // namespace crema::layers
