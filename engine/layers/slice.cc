// Slice along `axis` (1; or the old slice_dim, not both), Concat's inverse: the tops are the bottom's parts one after
// the other, cut at the strictly increasing slice_points (one fewer than tops), or equal parts; dx = the parts' dy.
#include <algorithm>

#include "layers/builtin.h"
#include "layers/parts.h"

namespace crema::layers {
namespace {

class Slice : public Layer {
 public:
  using Layer::Layer;
  Arity arity() const override { return {1, 1, 1, -1}; }
  Reads readsBackward() const override { return {.bottoms = false, .tops = false}; }

 protected:
  void configure(const Blobs& bottom, const Blobs& top) override {
    const auto& p = param_.slice_param();
    if (p.has_axis() && p.has_slice_dim()) invalid("give either axis or slice_dim, not both");
    if (p.has_slice_dim() && p.slice_dim() >= static_cast<uint32_t>(bottom[0]->shape().axes()))
      invalid("slice_dim {} is out of range: the bottom is {}", p.slice_dim(), bottom[0]->shape().brief());
    axis_ = bottom[0]->shape().canonicalAxis(p.has_slice_dim() ? static_cast<int>(p.slice_dim()) : p.axis());
    if (p.slice_point_size() && p.slice_point_size() + 1 != static_cast<int>(top.size()))
      invalid("{} slice_points make {} tops, here are {}", p.slice_point_size(), p.slice_point_size() + 1, top.size());
  }
  void reshape(const Blobs& bottom, const Blobs& top) override {
    const Shape& in = bottom[0]->shape();
    const auto& points = param_.slice_param().slice_point();
    const auto parts = static_cast<int>(top.size());
    if (points.empty() && in[axis_] % parts)
      invalid("axis {} of the bottom {} cannot be cut into {} equal parts; give slice_point", axis_, in.brief(), parts);
    int64_t from = 0;
    for (int i = 0; i < parts; ++i) {
      const int64_t to = points.empty()  ? int64_t{in[axis_]} / parts * (i + 1)
                         : i < parts - 1 ? int64_t{points[i]}
                                         : in[axis_];
      if (!points.empty() && (to <= from || to > in[axis_]))
        invalid("slice_point must rise strictly and stay inside axis {} of the bottom {}: {} follows {}", axis_,
                in.brief(), to, from);
      std::vector<int> dims = in.dims();
      dims[static_cast<size_t>(axis_)] = static_cast<int>(to - from);
      top[static_cast<size_t>(i)]->reshape(Shape(dims));
      from = to;
    }
  }
  void compute(const Blobs& bottom, const Blobs& top) override {
    withType(context().dtype, [&]<class T>() {
      std::vector<T*> parts;
      for (Blob* t : top) parts.push_back(t->mutableData<T>());
      const T* whole = bottom[0]->data<T>();
      eachPart(
          kernels().pool(), top, bottom[0]->shape(), axis_,
          [&](size_t i, int64_t to, int64_t from, int64_t count) { std::copy_n(whole + from, count, parts[i] + to); });
    });
  }
  void gradient(const Blobs& top, const std::vector<bool>& down, const Blobs& bottom) override {
    if (!down[0]) return;
    withType(context().dtype, [&]<class T>() {
      const std::vector<const T*> parts = diffsOf<T>(top);
      T* whole = bottom[0]->mutableDiff<T>();
      eachPart(
          kernels().pool(), top, bottom[0]->shape(), axis_,
          [&](size_t i, int64_t from, int64_t to, int64_t count) { std::copy_n(parts[i] + from, count, whole + to); });
    });
  }

 private:
  int axis_ = 1;
};

}  // namespace

void addSlice(LayerRegistry& r) { r.add<Slice>("Slice", "parts of a blob along an axis"); }

}  // namespace crema::layers
