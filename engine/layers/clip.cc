// Clip: y = max(min, min(x, max));  dx = dy where min <= x <= max, 0 elsewhere. NaN stays NaN. In place allowed.
// Options (clip_param): min and max, both needed, min <= max. (Caffe without a clip_param makes everything 0, and does
// not check that min <= max.)
#include <algorithm>

#include "layers/builtin.h"
#include "layers/elementwise.h"

namespace crema::layers {
namespace {

struct Clip {
  explicit Clip(const caffe::LayerParameter& p) : min(p.clip_param().min()), max(p.clip_param().max()) {
    if (!p.has_clip_param()) invalid("Clip needs clip_param with min and max");
    if (!(min <= max)) invalid("clip_param: min {} must not be above max {}", min, max);
  }
  template <class T>
  T value(T x) const {
    return std::max(std::min(x, T(max)), T(min));  // this order keeps NaN
  }
  template <class T>
  T slope(T x) const {
    return T(x >= T(min) && x <= T(max));
  }
  float min, max;
};

}  // namespace

void addClip(LayerRegistry& r) { addElementwise<Clip>(r, "Clip", "values held between min and max"); }

}  // namespace crema::layers
