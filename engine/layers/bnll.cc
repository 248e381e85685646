// BNLL (binomial normal log likelihood, also softplus): y = log(1 + exp(x)) = max(x, 0) + log(1 + exp(-|x|));
// dx = dy / (1 + exp(-x)). In place allowed (Caffe's gradient is wrong there). Caffe's clamp at 50 is not needed:
// nothing here overflows.
#include <algorithm>
#include <cmath>

#include "layers/builtin.h"
#include "layers/elementwise.h"
#include "layers/logistic.h"

namespace crema::layers {
namespace {

struct Bnll {
  explicit Bnll(const caffe::LayerParameter&) {}
  template <class T>
  T value(T x) const {
    return std::max(x, T(0)) + std::log1p(std::exp(-std::fabs(x)));
  }
  template <class T>
  T slope(T x) const {
    return logistic(x);
  }
};

}  // namespace

void addBNLL(LayerRegistry& r) { addElementwise<Bnll>(r, "BNLL", "softplus, log(1 + exp(x))"); }

}  // namespace crema::layers
