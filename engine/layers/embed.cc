// Embed: a row of a table for every index, y[...][o] = w[x[...]][o] + b[o]. The same as InnerProduct over one-hot
// vectors, without the products.
//   dw[i] = sum of dy over the places that hold i (added in their order);  db = sum of dy over all;  no gradient for x
// Options (embed_param): input_dim (rows), num_output, bias_term, fillers. Parameters: table input_dim x num_output,
// bias num_output. Top: the bottom's shape x num_output.
//
// Indices are truncated to integers, as in Caffe. -1, which the COCO tools write after a sentence, means no word: it
// gives zeros and no gradient (a release build of Caffe reads memory before the table). Any other index outside the
// table is an error.
#include "layers/builtin.h"

namespace crema::layers {
namespace {

class Embed : public Layer {
 public:
  using Layer::Layer;
  const char* withoutGradient(int) const override { return "indices"; }

 protected:
  void configure(const Blobs&, const Blobs&) override {
    const auto& p = param_.embed_param();
    if (p.num_output() == 0 || p.num_output() > INT32_MAX || p.input_dim() == 0 || p.input_dim() > INT32_MAX)
      invalid("embed_param needs input_dim and num_output, positive and below 2^31, not {} and {}", p.input_dim(),
              p.num_output());
    rows_ = static_cast<int>(p.input_dim()), width_ = static_cast<int>(p.num_output());
    addParam(Shape{rows_, width_}, p.weight_filler());
    if (p.bias_term()) addParam(Shape{width_}, p.bias_filler());
  }
  void reshape(const Blobs& bottom, const Blobs& top) override {
    std::vector<int> dims = bottom[0]->shape().dims();
    dims.push_back(width_);
    top[0]->reshape(Shape(dims));
  }
  void compute(const Blobs& bottom, const Blobs& top) override {
    withType(context().dtype, [&]<class T>() {
      const T* w = params()[0]->template data<T>();
      T* y = top[0]->mutableData<T>();
      for (int n = 0; n < bottom[0]->count(); ++n, y += width_) {
        const int64_t row = index<T>(*bottom[0], n);
        if (row < 0)
          std::fill_n(y, width_, T(0));
        else
          std::copy_n(w + row * width_, width_, y);
        if (params().size() > 1) kernels::add<T>(kernels(), width_, y, params()[1]->template data<T>(), y);
      }
    });
  }
  void gradient(const Blobs& top, const std::vector<bool>&, const Blobs& bottom) override {
    withType(context().dtype, [&]<class T>() {
      const T* dy = top[0]->diff<T>();
      if (params().size() > 1 && paramPropagates(1))
        kernels::ipBackwardBias<T>(kernels(), {bottom[0]->count(), 0, width_}, dy,
                                   params()[1]->template mutableDiff<T>(), true);
      if (!paramPropagates(0)) return;
      T* dw = params()[0]->template mutableDiff<T>();
      for (int n = 0; n < bottom[0]->count(); ++n, dy += width_)
        if (const int64_t row = index<T>(*bottom[0], n); row >= 0)
          kernels::add<T>(kernels(), width_, dw + row * width_, dy, dw + row * width_);
    });
  }

 private:
  template <class T>
  int64_t index(const Blob& x, int n) const {
    const T value = x.data<T>()[n];
    if (!(value > T(-2) && value < static_cast<T>(rows_)))
      badItem(n,
              "index {} of item {} has no row: the table has {}, 0 to {} (-1: no word); correct the data or input_dim",
              value, n, rows_, rows_ - 1);
    return static_cast<int64_t>(value);
  }

  int rows_ = 0, width_ = 0;
};

}  // namespace

void addEmbed(LayerRegistry& r) { r.add<Embed>("Embed", "a row of a table for every index"); }

}  // namespace crema::layers
