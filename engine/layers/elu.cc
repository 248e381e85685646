// ELU (Clevert et al. 2015): y = x for x > 0, alpha (exp(x) - 1) otherwise;  dx = dy * (x > 0 ? 1 : alpha exp(x)).
// In place allowed. Options (elu_param): alpha (1).
#include <cmath>

#include "layers/builtin.h"
#include "layers/elementwise.h"

namespace crema::layers {
namespace {

struct Elu {
  explicit Elu(const caffe::LayerParameter& p) : alpha(p.elu_param().alpha()) {}
  template <class T>
  T value(T x) const {
    return x > 0 ? x : T(alpha) * std::expm1(x);
  }
  template <class T>
  T slope(T x) const {
    return x > 0 ? T(1) : T(alpha) * std::exp(x);
  }
  float alpha;
};

}  // namespace

void addELU(LayerRegistry& r) { addElementwise<Elu>(r, "ELU", "exponential linear unit"); }

}  // namespace crema::layers
