// Input: blobs that the caller fills. Options (input_param): no shape (the caller reshapes), one for all tops, or one
// per top.
#include "layers/builtin.h"

namespace crema::layers {
namespace {

class Input : public Layer {
 public:
  using Layer::Layer;
  Arity arity() const override { return {0, 0, 1, -1}; }

 protected:
  void configure(const Blobs&, const Blobs& top) override {
    const auto& p = param_.input_param();
    if (p.shape_size() > 1 && p.shape_size() != static_cast<int>(top.size()))
      invalid("input_param needs no shape, one, or one per top: {} shapes, {} tops", p.shape_size(), top.size());
    for (size_t i = 0; i < top.size() && p.shape_size(); ++i)
      top[i]->reshape(toShape(p.shape(p.shape_size() == 1 ? 0 : static_cast<int>(i))));
  }
  void reshape(const Blobs&, const Blobs&) override {}
  void compute(const Blobs&, const Blobs&) override {}
  void gradient(const Blobs&, const std::vector<bool>&, const Blobs&) override {}
};

}  // namespace

Shape toShape(const caffe::BlobShape& shape) {
  std::vector<int> dims;
  for (int64_t d : shape.dim()) {
    if (d < 0 || d > INT32_MAX) invalid("dim: {} is not a size", d);
    dims.push_back(static_cast<int>(d));
  }
  return Shape(std::move(dims));
}

void addInput(LayerRegistry& r) { r.add<Input>("Input", "blobs that the caller fills"); }

}  // namespace crema::layers
