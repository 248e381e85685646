// Sigmoid: y = 1 / (1 + exp(-x));  dx = dy y (1 - y). In place allowed. Options (sigmoid_param): engine, without
// effect.
#include "layers/builtin.h"
#include "layers/elementwise.h"
#include "layers/logistic.h"

namespace crema::layers {
namespace {

struct Sigmoid {
  explicit Sigmoid(const caffe::LayerParameter&) {}
  template <class T>
  T value(T x) const {
    return logistic(x);
  }
  template <class T>
  T slope(T x) const {
    const T y = value(x);
    return y * (T(1) - y);
  }
};

}  // namespace

void addSigmoid(LayerRegistry& r) { addElementwise<Sigmoid>(r, "Sigmoid", "logistic function"); }

}  // namespace crema::layers
