// AbsVal: y = |x|;  dx = dy sign(x), 0 at 0. In place allowed (Caffe refuses it).
#include <cmath>

#include "layers/builtin.h"
#include "layers/elementwise.h"

namespace crema::layers {
namespace {

struct AbsVal {
  explicit AbsVal(const caffe::LayerParameter&) {}
  template <class T>
  T value(T x) const {
    return std::fabs(x);
  }
  template <class T>
  T slope(T x) const {
    return static_cast<T>((x > 0) - (x < 0));
  }
};

}  // namespace

void addAbsVal(LayerRegistry& r) { addElementwise<AbsVal>(r, "AbsVal", "absolute value"); }

}  // namespace crema::layers
