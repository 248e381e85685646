// Swish (Ramachandran et al. 2017): y = x s, s = 1 / (1 + exp(-beta x));  dx = dy (s + beta x s (1 - s)). In place
// allowed. Options (swish_param): beta (1).
#include "layers/builtin.h"
#include "layers/elementwise.h"
#include "layers/logistic.h"

namespace crema::layers {
namespace {

struct Swish {
  explicit Swish(const caffe::LayerParameter& p) : beta(p.swish_param().beta()) {}
  template <class T>
  T value(T x) const {
    return x * gate(x);
  }
  template <class T>
  T slope(T x) const {
    const T s = gate(x);
    return s + T(beta) * x * s * (T(1) - s);
  }
  template <class T>
  T gate(T x) const {
    return logistic(T(beta) * x);
  }
  float beta;
};

}  // namespace

void addSwish(LayerRegistry& r) { addElementwise<Swish>(r, "Swish", "x times its logistic function"); }

}  // namespace crema::layers
