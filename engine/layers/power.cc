// Power: y = (shift + scale x)^power;  dx = dy power scale (shift + scale x)^(power - 1). With power scale = 0 the
// output is the constant shift^power (1 for power 0), whatever x is, and dx = 0. In place allowed for every power (in
// Caffe the gradient is right for power 1 only). At shift + scale x = 0 the derivative is exact, where Caffe divides by
// zero. Options (power_param): power (1), scale (1), shift (0).
#include <cmath>

#include "layers/builtin.h"
#include "layers/elementwise.h"

namespace crema::layers {
namespace {

struct Power {
  explicit Power(const caffe::LayerParameter& p)
      : power(p.power_param().power()), scale(p.power_param().scale()), shift(p.power_param().shift()) {
    if (power * scale == 0) constant = power == 0 ? 1 : std::pow(shift, power);
  }
  template <class T>
  T value(T x) const {
    return power * scale == 0 ? T(constant) : raised(T(shift) + T(scale) * x, T(power));
  }
  template <class T>
  T slope(T x) const {
    if (power * scale == 0) return 0;
    return T(power * scale) * raised(T(shift) + T(scale) * x, T(power - 1));
  }
  template <class T>
  static T raised(T v, T to) {
    return to == 1 ? v : to == 0 ? T(1) : to == 2 ? v * v : std::pow(v, to);
  }
  double power, scale, shift, constant = 0;
};

}  // namespace

void addPower(LayerRegistry& r) { addElementwise<Power>(r, "Power", "(shift + scale x)^power"); }

}  // namespace crema::layers
