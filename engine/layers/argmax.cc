// ArgMax: the indices of the top_k (1) largest values. Without `axis` they are taken over all values of an item; top N
// x 1 x k (x 1 ... to the bottom's number of axes), or N x 2 x k with out_max_val: row 0 the indices, row 1 the values.
// With `axis` that axis becomes k: indices, or the values instead with out_max_val. Among equal values the larger index
// comes first, as in Caffe; NaN comes last. No gradient. Indices are stored as floats, which are exact below 2^24.
#include <algorithm>
#include <cmath>

#include "layers/builtin.h"

namespace crema::layers {
namespace {

class ArgMax : public Layer {
 public:
  using Layer::Layer;
  const char* withoutGradient(int) const override { return "values"; }

 protected:
  void configure(const Blobs& bottom, const Blobs&) override {
    const auto& p = param_.argmax_param();
    const Shape& in = bottom[0]->shape();
    if (in.axes() == 0) invalid("ArgMax needs at least one axis, the bottom is a scalar");
    byAxis_ = p.has_axis(), values_ = p.out_max_val();
    axis_ = byAxis_ ? in.canonicalAxis(p.axis()) : 1;
    if (p.top_k() < 1) invalid("top k must not be less than 1");
  }
  void reshape(const Blobs& bottom, const Blobs& top) override {
    const Shape& in = bottom[0]->shape();
    const uint32_t k = param_.argmax_param().top_k();
    length_ = byAxis_ ? in[axis_] : in.count(1);
    if (k > static_cast<uint32_t>(length_))
      invalid("top_k {} must be less than or equal to the {} values that compete (bottom is {})", k, length_,
              in.brief());
    k_ = static_cast<int>(k);
    outer_ = byAxis_ ? in.count(0, axis_) : in[0];
    inner_ = byAxis_ ? in.count(axis_ + 1) : 1;
    std::vector<int> dims(static_cast<size_t>(std::max(in.axes(), 3)), 1);
    if (byAxis_)
      dims = in.dims(), dims[static_cast<size_t>(axis_)] = k_;
    else
      dims[0] = in[0], dims[1] = values_ ? 2 : 1, dims[2] = k_;
    top[0]->reshape(Shape(dims));
  }
  void compute(const Blobs& bottom, const Blobs& top) override {
    withType(context().dtype, [&]<class T>() {
      const T* x = bottom[0]->data<T>();
      T* y = top[0]->mutableData<T>();
      kernels().pool().run(outer_, [&](int o, int) {
        std::vector<std::pair<T, int>> best(static_cast<size_t>(length_));
        for (int64_t i = 0; i < inner_; ++i) {
          select(x + int64_t{o} * length_ * inner_ + i, best);
          put(best, y, o, i);
        }
      });
    });
  }
  void gradient(const Blobs&, const std::vector<bool>&, const Blobs&) override {}

 private:
  template <class T>
  void select(const T* x, std::vector<std::pair<T, int>>& best) const {
    for (int c = 0; c < length_; ++c) best[static_cast<size_t>(c)] = {x[c * inner_], c};
    std::partial_sort(best.begin(), best.begin() + k_, best.end(), [](const auto& a, const auto& b) {
      if (std::isnan(a.first) || std::isnan(b.first))
        return std::isnan(a.first) == std::isnan(b.first) ? a.second > b.second : std::isnan(b.first);
      return a.first != b.first ? a.first > b.first : a.second > b.second;
    });
  }
  template <class T>
  void put(const std::vector<std::pair<T, int>>& best, T* y, int64_t o, int64_t i) const {
    const bool both = values_ && !byAxis_;
    for (int64_t k = 0; k < k_; ++k) {
      const auto& [value, index] = best[static_cast<size_t>(k)];
      if (both) {
        y[o * 2 * k_ + k] = static_cast<T>(index), y[(o * 2 + 1) * k_ + k] = value;
      } else {
        y[(o * k_ + k) * inner_ + i] = values_ ? value : static_cast<T>(index);
      }
    }
  }
  bool byAxis_ = false, values_ = false;
  int axis_ = 1, length_ = 0, k_ = 1, outer_ = 0;
  int64_t inner_ = 1;
};

}  // namespace

void addArgMax(LayerRegistry& r) { r.add<ArgMax>("ArgMax", "where the largest values stand"); }

}  // namespace crema::layers
