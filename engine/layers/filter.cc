// Filter: keeps the items for which the last bottom, the selector (N numbers), is not 0; one top for each other bottom,
// with its kept items in order; dx = dy where an item was kept, 0 elsewhere. The tops' batch changes from pass to pass
// and may be empty; before the first pass it is N, so that a net can be built on it.
#include <algorithm>
#include <cmath>

#include "layers/builtin.h"

namespace crema::layers {
namespace {

class Filter : public Layer {
 public:
  using Layer::Layer;
  Arity arity() const override { return {2, -1, 1, -1}; }
  const char* withoutGradient(int bottom) const override { return bottom != selector_ ? nullptr : "selector"; }

 protected:
  void configure(const Blobs& bottom, const Blobs& top) override {
    if (top.size() + 1 != bottom.size())
      invalid("Filter makes one top for every bottom but the selector, the last: {} bottoms need {} tops, here are {}",
              bottom.size(), bottom.size() - 1, top.size());
    selector_ = static_cast<int>(bottom.size()) - 1;
  }
  void reshape(const Blobs& bottom, const Blobs& top) override {
    const Shape& mark = bottom.back()->shape();
    const int items = mark.axes() ? mark[0] : 0;
    if (mark.axes() == 0 || mark.count() != items)
      invalid("the selector (bottom {}) must hold one number per item: N or N x 1 ..., it is {}", selector_,
              mark.brief());
    for (int i = 0; i < selector_; ++i) {
      const Shape& in = bottom[static_cast<size_t>(i)]->shape();
      if (in.axes() == 0 || in[0] != items)
        invalid("each bottom should have the same 0th dimension as the selector: bottom {} is {}, the selector {}", i,
                in.brief(), mark.brief());
    }
    choose(*bottom.back(), items);
    for (size_t i = 0; i < top.size(); ++i) {
      std::vector<int> dims = bottom[i]->shape().dims();
      dims[0] = static_cast<int>(kept_.size());
      top[i]->reshape(Shape(dims));
    }
  }
  void compute(const Blobs& bottom, const Blobs& top) override {
    withType(context().dtype, [&]<class T>() {
      for (size_t i = 0; i < top.size(); ++i) {
        const int64_t row = bottom[i]->shape().count(1);
        for (size_t k = 0; k < kept_.size(); ++k)
          std::copy_n(bottom[i]->data<T>() + kept_[k] * row, row,
                      top[i]->mutableData<T>() + static_cast<int64_t>(k) * row);
      }
    });
  }
  void gradient(const Blobs& top, const std::vector<bool>& down, const Blobs& bottom) override {
    withType(context().dtype, [&]<class T>() {
      for (size_t i = 0; i < top.size(); ++i) {
        if (!down[i]) continue;
        const int64_t row = bottom[i]->shape().count(1);
        bottom[i]->fillDiff(0);
        for (size_t k = 0; k < kept_.size(); ++k)
          std::copy_n(top[i]->diff<T>() + static_cast<int64_t>(k) * row, row,
                      bottom[i]->mutableDiff<T>() + kept_[k] * row);
      }
    });
  }

 private:
  void choose(const Blob& selector, int items) {
    kept_.clear();
    for (int i = 0; i < items; ++i) {
      const double mark = building_ ? 1 : selector.dataAt(i);
      if (std::isnan(mark)) badItem(i, "the selector of item {} is not a number", i);
      if (mark != 0) kept_.push_back(i);
    }
    building_ = false;
  }
  int selector_ = 1;
  bool building_ = true;
  std::vector<int64_t> kept_;
};

}  // namespace

void addFilter(LayerRegistry& r) { r.add<Filter>("Filter", "the items that a selector keeps"); }

}  // namespace crema::layers
