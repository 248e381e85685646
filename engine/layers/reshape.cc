// Reshape: other sizes for axes [axis, axis + num_axes) (0, -1: to the end); data and gradient are shared with the
// bottom, nothing is copied. Options (reshape_param): shape: dim 0 copies the bottom's axis at the same place, one dim
// may be -1, inferred from the count; a negative axis counts from one past the end, so that axis -1 appends.
#include "layers/builtin.h"

namespace crema::layers {
namespace {

class Reshape : public Layer {
 public:
  using Layer::Layer;

 protected:
  void reshape(const Blobs& bottom, const Blobs& top) override {
    if (top[0] == bottom[0]) invalid("Reshape cannot work in place; give the top another name");
    top[0]->reshape(wanted(bottom[0]->shape()));
    top[0]->shareData(*bottom[0]);
    top[0]->shareDiff(*bottom[0]);
  }
  void compute(const Blobs&, const Blobs&) override {}
  void gradient(const Blobs&, const std::vector<bool>&, const Blobs&) override {}

 private:
  Shape wanted(const Shape& in) const {
    const auto& p = param_.reshape_param();
    if (p.axis() > in.axes() || p.axis() < -in.axes() - 1)
      invalid("axis {} is out of range for the bottom {}", p.axis(), in.brief());
    const int first = p.axis() >= 0 ? p.axis() : in.axes() + p.axis() + 1;
    if (p.num_axes() < -1 || p.num_axes() > in.axes() - first)
      invalid("num_axes {} from axis {} is out of range for the bottom {}", p.num_axes(), first, in.brief());
    const int last = p.num_axes() == -1 ? in.axes() : first + p.num_axes();
    std::vector<int> dims(in.dims().begin(), in.dims().begin() + first);
    int inferred = -1;
    for (int i = 0; i < p.shape().dim_size(); ++i) {
      const int64_t d = p.shape().dim(i);
      if (d < -1 || d > INT32_MAX) invalid("dim {} of shape is neither a size, nor 0, nor -1", d);
      if (d == -1 && inferred >= 0) invalid("new shape contains multiple -1 dims: one size can be inferred");
      if (d == -1) inferred = static_cast<int>(dims.size());
      if (d == 0 && first + i >= in.axes())
        invalid("new shape contains a 0, but there was no corresponding bottom axis to copy: {} of {}", first + i,
                in.brief());
      dims.push_back(d == 0 ? in[first + i] : d == -1 ? 1 : static_cast<int>(d));
    }
    dims.insert(dims.end(), in.dims().begin() + last, in.dims().end());
    const int known = Shape(dims).count();
    if (inferred >= 0 && (known == 0 || in.count() % known))
      invalid("bottom count {} must be divisible by product of the known dims {} (bottom is {})", in.count(), known,
              in.brief());
    if (inferred >= 0) dims[static_cast<size_t>(inferred)] = in.count() / known;
    const Shape out(dims);
    if (out.count() != in.count())
      invalid("output count must match input count: {} has {} values, the bottom {} has {}", out.brief(), out.count(),
              in.brief(), in.count());
    return out;
  }
};

}  // namespace

void addReshape(LayerRegistry& r) {
  r.add<Reshape>("Reshape", "the same values in another shape", TopMemory::kOfBottom);
}

}  // namespace crema::layers
