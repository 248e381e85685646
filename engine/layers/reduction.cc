// Reduction: the axes from `axis` on become one number, y = coeff r(x):
//   SUM sum x   ASUM sum |x|   SUMSQ sum x^2   MEAN sum x / n;   dx = dy coeff (1, sign(x), 2 x, 1 / n), sign(0) = 0
// Sums are taken in double. Top: the axes before `axis`; axis 0 gives a scalar.
// Options (reduction_param): operation (SUM), axis (0), coeff (1).
#include <algorithm>
#include <cmath>

#include "layers/builtin.h"
#include "layers/loops.h"

namespace crema::layers {
namespace {

using Op = caffe::ReductionParameter;

class Reduction : public Layer {
 public:
  using Layer::Layer;

 protected:
  void reshape(const Blobs& bottom, const Blobs& top) override {
    const Shape& x = bottom[0]->shape();
    const int axis = x.axes() == 0 ? 0 : x.canonicalAxis(param_.reduction_param().axis());
    rows_ = {1, x.count(0, axis), x.count(axis)};
    const double n = std::max(1, rows_.inner);
    factor_ = param_.reduction_param().coeff() / (operation() == Op::MEAN ? n : 1.0);
    top[0]->reshape(Shape(std::vector<int>(x.dims().begin(), x.dims().begin() + axis)));
  }
  void compute(const Blobs& bottom, const Blobs& top) override {
    withType(context().dtype, [&]<class T>() {
      const T* x = bottom[0]->data<T>();
      std::vector<double> sums(static_cast<size_t>(rows_.channels));
      const auto sum = [&](auto term) {
        channelSums(kernels().pool(), rows_, sums.data(), [&](int64_t i, int) { return term(double{x[i]}); });
      };
      switch (operation()) {
        case Op::ASUM:
          sum([](double v) { return std::fabs(v); });
          break;
        case Op::SUMSQ:
          sum([](double v) { return v * v; });
          break;
        case Op::SUM:
        case Op::MEAN:
          sum([](double v) { return v; });
          break;
      }
      T* y = top[0]->mutableData<T>();
      for (size_t r = 0; r < sums.size(); ++r) y[r] = static_cast<T>(factor_ * sums[r]);
    });
  }
  void gradient(const Blobs& top, const std::vector<bool>& down, const Blobs& bottom) override {
    if (!down[0]) return;
    withType(context().dtype, [&]<class T>() {
      const T *x = bottom[0]->data<T>(), *dy = top[0]->diff<T>();
      T* dx = bottom[0]->mutableDiff<T>();
      const auto op = operation();
      eachRow(kernels().pool(), rows_, [&](int row, int64_t from, int64_t to) {
        const T d = static_cast<T>(factor_ * dy[row]);
        for (int64_t i = from; i < to; ++i)
          dx[i] = op == Op::ASUM ? d * static_cast<T>((x[i] > 0) - (x[i] < 0)) : op == Op::SUMSQ ? 2 * d * x[i] : d;
      });
    });
  }

 private:
  Op::ReductionOp operation() const { return param_.reduction_param().operation(); }
  Channels rows_;
  double factor_ = 1;
};

}  // namespace

void addReduction(LayerRegistry& r) { r.add<Reduction>("Reduction", "sums over the last axes"); }

}  // namespace crema::layers
