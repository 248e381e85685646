// Tile: axis `axis` (1) repeated `tiles` times; dx = the sum of dy over the copies, in their order.
#include <algorithm>

#include "layers/builtin.h"

namespace crema::layers {
namespace {

class Tile : public Layer {
 public:
  using Layer::Layer;

 protected:
  void configure(const Blobs& bottom, const Blobs&) override {
    axis_ = bottom[0]->shape().canonicalAxis(param_.tile_param().axis());
    tiles_ = param_.tile_param().tiles();
    if (tiles_ <= 0) invalid("Number of tiles must be positive, not {}; give tile_param.tiles", tiles_);
  }
  void reshape(const Blobs& bottom, const Blobs& top) override {
    std::vector<int> dims = bottom[0]->shape().dims();
    int& size = dims[static_cast<size_t>(axis_)];
    size = Shape{size, tiles_}.count();
    top[0]->reshape(Shape(dims));
    rows_ = bottom[0]->shape().count(0, axis_), row_ = bottom[0]->shape().count(axis_);
  }
  void compute(const Blobs& bottom, const Blobs& top) override {
    withType(context().dtype, [&]<class T>() {
      const T* x = bottom[0]->data<T>();
      T* y = top[0]->mutableData<T>();
      for (int64_t r = 0; r < rows_; ++r)
        for (int64_t t = 0; t < tiles_; ++t) std::copy_n(x + r * row_, row_, y + (r * tiles_ + t) * row_);
    });
  }
  void gradient(const Blobs& top, const std::vector<bool>& down, const Blobs& bottom) override {
    if (!down[0]) return;
    withType(context().dtype, [&]<class T>() {
      const T* dy = top[0]->diff<T>();
      T* dx = bottom[0]->mutableDiff<T>();
      kernels().pool().run(static_cast<int>(rows_), [&](int r, int) {
        T* sum = dx + r * row_;
        std::copy_n(dy + r * tiles_ * row_, row_, sum);
        for (int64_t t = 1; t < tiles_; ++t) {
          const T* copy = dy + (r * tiles_ + t) * row_;
          for (int64_t k = 0; k < row_; ++k) sum[k] += copy[k];
        }
      });
    });
  }

 private:
  int axis_ = 1, tiles_ = 1;
  int64_t rows_ = 0, row_ = 0;
};

}  // namespace

void addTile(LayerRegistry& r) { r.add<Tile>("Tile", "an axis repeated"); }

}  // namespace crema::layers
