// Exp: y = base^(shift + scale x) = exp(ln(base) (shift + scale x));  dx = dy y scale ln(base). In place allowed.
// Options (exp_param): base (-1 means e, else positive), scale (1), shift (0).
#include <cmath>

#include "layers/builtin.h"
#include "layers/elementwise.h"

namespace crema::layers {
namespace {

struct Exp {
  explicit Exp(const caffe::LayerParameter& p) {
    const auto& o = p.exp_param();
    if (o.base() != -1 && !(o.base() > 0 && std::isfinite(o.base())))
      invalid("exp_param: base must be strictly positive, or -1 for e, not {}", o.base());
    const double log = o.base() == -1 ? 1 : std::log(static_cast<double>(o.base()));
    factor = log * o.scale(), offset = log * o.shift();
  }
  template <class T>
  T value(T x) const {
    return std::exp(T(offset) + T(factor) * x);
  }
  template <class T>
  T slope(T x) const {
    return T(factor) * value(x);
  }
  double factor, offset;
};

}  // namespace

void addExp(LayerRegistry& r) { addElementwise<Exp>(r, "Exp", "powers of a base"); }

}  // namespace crema::layers
