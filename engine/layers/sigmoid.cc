// Sigmoid: y = 1 / (1 + exp(-x));  dx = dy y (1 - y). In place allowed. Options (sigmoid_param): engine, without
// effect.
#include <cmath>

#include "layers/builtin.h"
#include "layers/elementwise.h"

namespace crema {
namespace {

struct Sigmoid {
  explicit Sigmoid(const caffe::LayerParameter&) {}
  template <class T>
  T value(T x) const {
    return T(1) / (T(1) + std::exp(-x));
  }
  template <class T>
  T slope(T x) const {
    const T y = value(x);
    return y * (T(1) - y);
  }
};

}  // namespace

void addSigmoid(LayerRegistry& r) { addElementwise<Sigmoid>(r, "Sigmoid", "logistic function"); }

}  // namespace crema
