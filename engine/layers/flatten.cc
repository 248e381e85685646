// Flatten: axes [axis, end_axis] (1, -1) become one; data and gradient are shared with the bottom, nothing is copied.
#include "layers/builtin.h"

namespace crema::layers {
namespace {

class Flatten : public Layer {
 public:
  using Layer::Layer;

 protected:
  void reshape(const Blobs& bottom, const Blobs& top) override {
    if (top[0] == bottom[0]) invalid("Flatten cannot work in place; give the top another name");
    const Shape& s = bottom[0]->shape();
    const int first = s.canonicalAxis(param_.flatten_param().axis()),
              last = s.canonicalAxis(param_.flatten_param().end_axis());
    if (last < first) invalid("end_axis {} lies before axis {}", last, first);
    std::vector<int> dims(s.dims().begin(), s.dims().begin() + first);
    dims.push_back(s.count(first, last + 1));
    dims.insert(dims.end(), s.dims().begin() + last + 1, s.dims().end());
    top[0]->reshape(Shape(dims));
    top[0]->shareData(*bottom[0]);
    top[0]->shareDiff(*bottom[0]);
  }
  void compute(const Blobs&, const Blobs&) override {}
  void gradient(const Blobs&, const std::vector<bool>&, const Blobs&) override {}
};

}  // namespace

void addFlatten(LayerRegistry& r) { r.add<Flatten>("Flatten", "several axes as one", TopMemory::kOfBottom); }

}  // namespace crema::layers
