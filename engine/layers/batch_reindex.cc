// BatchReindex: top item i = item bottom1[i] of bottom 0; an item may be taken several times or not at all, the list
// may be empty; dx of an item = the sum of dy over its copies, in their order. Bottom 1: one axis, numbers of items of
// bottom 0 (fractions are cut off); no gradient.
#include <algorithm>

#include "layers/builtin.h"

namespace crema::layers {
namespace {

class BatchReindex : public Layer {
 public:
  using Layer::Layer;
  Arity arity() const override { return {2, 2, 1, 1}; }
  const char* withoutGradient(int bottom) const override { return bottom == 0 ? nullptr : "indices"; }

 protected:
  void reshape(const Blobs& bottom, const Blobs& top) override {
    const Shape &in = bottom[0]->shape(), &list = bottom[1]->shape();
    if (list.axes() != 1) invalid("bottom 1 must be a list of item numbers with one axis, it is {}", list.brief());
    if (in.axes() == 0) invalid("bottom 0 must have items on axis 0, it is a scalar");
    std::vector<int> dims = in.dims();
    dims[0] = list[0];
    top[0]->reshape(Shape(dims));
    row_ = in.count(1);
    if (in[0] != items_ || from_.size() != static_cast<size_t>(list[0])) from_.assign(static_cast<size_t>(list[0]), 0);
    items_ = in[0];
  }
  void compute(const Blobs& bottom, const Blobs& top) override {
    for (int i = 0; i < bottom[1]->count(); ++i) {
      const double item = bottom[1]->dataAt(i);
      if (!(item >= 0 && item < items_))
        badData("index {} at place {} is no item of bottom 0: it has {}, 0 to {}", item, i, items_, items_ - 1);
      from_[static_cast<size_t>(i)] = static_cast<int64_t>(item);
    }
    withType(context().dtype, [&]<class T>() {
      for (size_t i = 0; i < from_.size(); ++i)
        std::copy_n(bottom[0]->data<T>() + from_[i] * row_, row_,
                    top[0]->mutableData<T>() + static_cast<int64_t>(i) * row_);
    });
  }
  void gradient(const Blobs& top, const std::vector<bool>& down, const Blobs& bottom) override {
    if (!down[0]) return;
    bottom[0]->fillDiff(0);
    withType(context().dtype, [&]<class T>() {
      T* dx = bottom[0]->mutableDiff<T>();
      for (size_t i = 0; i < from_.size(); ++i) {
        T* sum = dx + from_[i] * row_;
        kernels::add<T>(kernels(), row_, sum, top[0]->diff<T>() + static_cast<int64_t>(i) * row_, sum);
      }
    });
  }

 private:
  int items_ = 0;
  int64_t row_ = 0;
  std::vector<int64_t> from_;
};

}  // namespace

void addBatchReindex(LayerRegistry& r) {
  r.add<BatchReindex>("BatchReindex", "items chosen by a list of their numbers");
}

}  // namespace crema::layers
