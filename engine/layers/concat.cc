// Concat along `axis` (1; or the old concat_dim, not both): top = bottoms one after the other; dx_i = its part of dy.
#include <algorithm>

#include "layers/builtin.h"
#include "layers/parts.h"

namespace crema::layers {
namespace {

class Concat : public Layer {
 public:
  using Layer::Layer;
  Arity arity() const override { return {1, -1, 1, 1}; }
  Reads readsBackward() const override { return {.bottoms = false, .tops = false}; }

 protected:
  void configure(const Blobs& bottom, const Blobs&) override {
    const auto& p = param_.concat_param();
    if (p.has_axis() && p.has_concat_dim()) invalid("give either axis or concat_dim, not both");
    if (p.has_concat_dim() && static_cast<int>(p.concat_dim()) >= bottom[0]->shape().axes())
      invalid("concat_dim {} is out of range: the bottom is {}", p.concat_dim(), bottom[0]->shape().brief());
    axis_ = bottom[0]->shape().canonicalAxis(p.has_concat_dim() ? static_cast<int>(p.concat_dim()) : p.axis());
  }
  void reshape(const Blobs& bottom, const Blobs& top) override {
    std::vector<int> dims = bottom[0]->shape().dims();
    const auto axis = static_cast<size_t>(axis_);
    for (size_t i = 1; i < bottom.size(); ++i) {
      std::vector<int> other = bottom[i]->shape().dims();
      const bool fits = other.size() == dims.size();
      const int size = fits ? other[axis] : 0;
      if (fits) other[axis] = dims[axis];
      if (!fits || other != dims)
        invalid("bottom {} is {}, bottom 0 is {}: all axes but axis {} must agree", i, bottom[i]->shape().brief(),
                bottom[0]->shape().brief(), axis_);
      dims[axis] += size;
    }
    top[0]->reshape(Shape(dims));
  }
  void compute(const Blobs& bottom, const Blobs& top) override {
    withType(context().dtype, [&]<class T>() {
      const std::vector<const T*> parts = dataOf<T>(bottom);
      T* whole = top[0]->mutableData<T>();
      eachPart(
          kernels().pool(), bottom, top[0]->shape(), axis_,
          [&](size_t i, int64_t from, int64_t to, int64_t count) { std::copy_n(parts[i] + from, count, whole + to); });
    });
  }
  void gradient(const Blobs& top, const std::vector<bool>& down, const Blobs& bottom) override {
    withType(context().dtype, [&]<class T>() {
      std::vector<T*> parts;
      for (size_t i = 0; i < bottom.size(); ++i) parts.push_back(down[i] ? bottom[i]->mutableDiff<T>() : nullptr);
      const T* whole = top[0]->diff<T>();
      eachPart(kernels().pool(), bottom, top[0]->shape(), axis_,
               [&](size_t i, int64_t from, int64_t to, int64_t count) {
                 if (parts[i]) std::copy_n(whole + to, count, parts[i] + from);
               });
    });
  }

 private:
  int axis_ = 1;
};

}  // namespace

void addConcat(LayerRegistry& r) { r.add<Concat>("Concat", "blobs one after the other along an axis"); }

}  // namespace crema::layers
