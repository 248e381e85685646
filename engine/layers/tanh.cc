// TanH: y = tanh(x);  dx = dy (1 - y^2). In place allowed. Options (tanh_param): engine, without effect.
#include <cmath>

#include "layers/builtin.h"
#include "layers/elementwise.h"

namespace crema {
namespace {

struct TanH {
  explicit TanH(const caffe::LayerParameter&) {}
  template <class T>
  T value(T x) const {
    return std::tanh(x);
  }
  template <class T>
  T slope(T x) const {
    const T y = std::tanh(x);
    return T(1) - y * y;
  }
};

}  // namespace

void addTanH(LayerRegistry& r) { addElementwise<TanH>(r, "TanH", "hyperbolic tangent"); }

}  // namespace crema
