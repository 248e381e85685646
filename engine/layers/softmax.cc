// Softmax along `axis`: y_i = exp(x_i - max x) / sum_j exp(x_j - max x);  dx_i = y_i (dy_i - sum_j dy_j y_j). In place
// allowed. y is kept where a later layer overwrites it in place.
#include "layers/builtin.h"

namespace crema::layers {
namespace {

class Softmax : public Layer {
 public:
  Softmax(const caffe::LayerParameter& p, const LayerContext& c) : Layer(p, c), kept_(c.dtype) {}
  bool allowsInPlace() const override { return true; }

 protected:
  void configure(const Blobs& bottom, const Blobs&) override {
    axis_ = bottom[0]->shape().canonicalAxis(param_.softmax_param().axis());
  }
  void reshape(const Blobs& bottom, const Blobs& top) override {
    if (top[0] != bottom[0]) top[0]->reshape(bottom[0]->shape());
    const Shape& s = bottom[0]->shape();
    kept_.reshape(s);
    outer_ = s.count(0, axis_), classes_ = s[axis_], inner_ = s.count(axis_ + 1);
  }
  void compute(const Blobs& bottom, const Blobs& top) override {
    withType(context().dtype, [&]<class T>() {
      kernels::softmax<T>(kernels(), outer_, classes_, inner_, bottom[0]->data<T>(), top[0]->mutableData<T>());
    });
    if (keeps()) kept_.copyDataFrom(*top[0]);
  }
  void gradient(const Blobs& top, const std::vector<bool>& down, const Blobs& bottom) override {
    if (!down[0]) return;
    withType(context().dtype, [&]<class T>() {
      const T *y = (keeps() ? kept_ : *top[0]).template data<T>(), *dy = top[0]->diff<T>();
      T* dx = bottom[0]->mutableDiff<T>();
      for (int o = 0; o < outer_; ++o)
        for (int p = 0; p < inner_; ++p) {
          const int64_t first = static_cast<int64_t>(o) * classes_ * inner_ + p;
          double dot = 0;
          for (int c = 0; c < classes_; ++c) dot += static_cast<double>(y[first + c * inner_]) * dy[first + c * inner_];
          for (int c = 0; c < classes_; ++c) {
            const int64_t i = first + static_cast<int64_t>(c) * inner_;
            dx[i] = y[i] * (dy[i] - static_cast<T>(dot));
          }
        }
    });
  }

 private:
  bool keeps() const { return context().needsBackward && !context().memory.overwriters.empty(); }
  Blob kept_;  // y
  int axis_ = 1, outer_ = 0, classes_ = 0, inner_ = 0;
};

}  // namespace

void addSoftmax(LayerRegistry& r) { r.add<Softmax>("Softmax", "exponentials normalised to sum 1"); }

}  // namespace crema::layers
