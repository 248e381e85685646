// Log: y = ln(shift + scale x) / ln(base);  dx = dy scale / (ln(base) (shift + scale x)). In place allowed (Caffe's
// gradient is wrong there). Arguments that are not positive give NaN or -inf, as in Caffe; the solver's error then
// names this layer.
// Options (log_param): base (-1 means e, else positive and not 1), scale (1), shift (0).
#include <cmath>

#include "layers/builtin.h"
#include "layers/elementwise.h"

namespace crema::layers {
namespace {

struct Log {
  explicit Log(const caffe::LayerParameter& p) : scale(p.log_param().scale()), shift(p.log_param().shift()) {
    const double base = p.log_param().base();
    if (base != -1 && !(base > 0 && base != 1 && std::isfinite(base)))
      invalid("log_param: base must be strictly positive and not 1, or -1 for e, not {}", base);
    factor = base == -1 ? 1 : 1 / std::log(base);
  }
  template <class T>
  T value(T x) const {
    return T(factor) * std::log(T(shift) + T(scale) * x);
  }
  template <class T>
  T slope(T x) const {
    return T(factor * scale) / (T(shift) + T(scale) * x);
  }
  double scale, shift, factor;
};

}  // namespace

void addLog(LayerRegistry& r) { addElementwise<Log>(r, "Log", "logarithm to a base"); }

}  // namespace crema::layers
