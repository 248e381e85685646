// TanH: y = tanh(x);  dx = dy (1 - y^2). In place allowed. Options (tanh_param): engine, without effect.
// For float it is 1 - 2 / (exp(2 x) + 1) in double, or x where x^3 / 3 is below the precision: a third of tanhf's time.
#include <cmath>
#include <type_traits>

#include "layers/builtin.h"
#include "layers/elementwise.h"

namespace crema::layers {
namespace {

struct TanH {
  explicit TanH(const caffe::LayerParameter&) {}
  template <class T>
  T value(T x) const {
    if constexpr (std::is_same_v<T, double>) return std::tanh(x);
    return std::fabs(x) < T(1e-4) ? x : static_cast<T>(1 - 2 / (std::exp(2.0 * x) + 1));
  }
  template <class T>
  T slope(T x) const {
    const T y = value(x);
    return T(1) - y * y;
  }
};

}  // namespace

void addTanH(LayerRegistry& r) { addElementwise<TanH>(r, "TanH", "hyperbolic tangent"); }

}  // namespace crema::layers
