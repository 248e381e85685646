// Crop: bottom 0 cut to bottom 1's sizes on `axis` (2) and all axes behind it, from the offsets on; dx = dy inside the
// cut, 0 outside. Of bottom 1 only the shape is used: its gradient is 0.
// Options (crop_param): axis; offset: none (0), one for all, or one for each cropped axis.
#include <algorithm>

#include "layers/builtin.h"

namespace crema::layers {
namespace {

class Crop : public Layer {
 public:
  using Layer::Layer;
  Arity arity() const override { return {2, 2, 1, 1}; }

 protected:
  void configure(const Blobs& bottom, const Blobs&) override {
    const auto& p = param_.crop_param();
    axis_ = bottom[0]->shape().canonicalAxis(p.axis());
    const int cropped = bottom[0]->shape().axes() - axis_;
    if (p.offset_size() > 1 && p.offset_size() != cropped)
      invalid("give no offset, one, or one for each of the {} cropped axes, not {}", cropped, p.offset_size());
  }
  void reshape(const Blobs& bottom, const Blobs& top) override {
    const Shape &in = bottom[0]->shape(), &like = bottom[1]->shape();
    const auto& p = param_.crop_param();
    if (in.axes() != like.axes()) invalid("both bottoms need as many axes: {} and {}", in.brief(), like.brief());
    offsets_.assign(static_cast<size_t>(in.axes()), 0);
    std::vector<int> dims = in.dims();
    for (int i = axis_; i < in.axes(); ++i) {
      const int64_t offset = p.offset_size() == 0 ? 0 : p.offset(p.offset_size() == 1 ? 0 : i - axis_);
      if (offset + like[i] > in[i])
        invalid("the crop for dimension {} is out-of-bounds with size {} and offset {}: bottom 0 is {}", i, like[i],
                offset, in.brief());
      offsets_[static_cast<size_t>(i)] = static_cast<int>(offset), dims[static_cast<size_t>(i)] = like[i];
    }
    top[0]->reshape(Shape(dims));
  }
  void compute(const Blobs& bottom, const Blobs& top) override {
    withType(context().dtype, [&]<class T>() {
      const T* x = bottom[0]->data<T>();
      T* y = top[0]->mutableData<T>();
      eachRow(bottom[0]->shape(), top[0]->shape(),
              [&](int64_t from, int64_t to, int64_t count) { std::copy_n(x + from, count, y + to); });
    });
  }
  void gradient(const Blobs& top, const std::vector<bool>& down, const Blobs& bottom) override {
    if (down[1]) bottom[1]->fillDiff(0);
    if (!down[0]) return;
    bottom[0]->fillDiff(0);
    withType(context().dtype, [&]<class T>() {
      const T* dy = top[0]->diff<T>();
      T* dx = bottom[0]->mutableDiff<T>();
      eachRow(bottom[0]->shape(), top[0]->shape(),
              [&](int64_t from, int64_t to, int64_t count) { std::copy_n(dy + to, count, dx + from); });
    });
  }

 private:
  // use(begin of a row of the last axis in the bottom, begin in the top, its length)
  template <class Use>
  void eachRow(const Shape& in, const Shape& out, Use use) const {
    const int last = out.axes() - 1, row = out[last];
    for (int64_t to = 0; to < out.count(); to += row) {
      int64_t from = offsets_.back(), rest = to / row, step = in[last];
      for (int i = last - 1; i >= 0; --i) {
        from += (rest % out[i] + offsets_[static_cast<size_t>(i)]) * step;
        rest /= out[i], step *= in[i];
      }
      use(from, to, row);
    }
  }
  int axis_ = 2;
  std::vector<int> offsets_;
};

}  // namespace

void addCrop(LayerRegistry& r) { r.add<Crop>("Crop", "a blob cut to another's sizes"); }

}  // namespace crema::layers
