// InnerProduct (fully connected): y[n][o] = b[o] + sum_i w[o][i] x[n][i], i over all axes from `axis` on.
//   dx = dy w;  dw[o][i] = sum_n dy[n][o] x[n][i];  db[o] = sum_n dy[n][o]
// Options (inner_product_param): num_output, bias_term, fillers, axis (1), transpose (weights stored i x o).
// Parameters: weights num_output x inputs (or inputs x num_output), bias num_output. Top: leading axes x num_output.
#include "layers/builtin.h"

namespace crema::layers {
namespace {

class InnerProduct : public Layer {
 public:
  using Layer::Layer;
  bool setsGradients() const override { return true; }
  bool canDefer() const override { return context().dtype == DType::kFloat32; }
  kernels::IpShape deferredShape() const override { return shape_; }
  void updateDeferred(const kernels::IpFactors<float>& factors, const kernels::Update& u, float* histories,
                      int64_t stride) override {
    kernels::ipUpdate(kernels(), shape_, factors, u, histories, stride, params()[0]->mutableData<float>());
  }
  Reads readsBackward() const override { return {.bottoms = true, .tops = false}; }
  int64_t multiplyAdds(const Blobs&, const Blobs&) const override { return int64_t{shape_.n} * params()[0]->count(); }

 protected:
  void configure(const Blobs& bottom, const Blobs&) override {
    const auto& p = param_.inner_product_param();
    if (p.num_output() == 0 || p.num_output() > INT32_MAX)
      invalid("num_output must be given, positive and below 2^31, not {}", p.num_output());
    axis_ = bottom[0]->shape().canonicalAxis(p.axis());
    shape_.out = static_cast<int>(p.num_output());
    shape_.in = bottom[0]->shape().count(axis_);
    shape_.transposed = p.transpose();
    addParam(p.transpose() ? Shape{shape_.in, shape_.out} : Shape{shape_.out, shape_.in}, p.weight_filler());
    if (p.bias_term()) addParam(Shape{shape_.out}, p.bias_filler());
  }

  void reshape(const Blobs& bottom, const Blobs& top) override {
    const Shape& in = bottom[0]->shape();
    if (in.count(axis_) != shape_.in)
      invalid("the bottom is {}: {} inputs from axis {} on, the weights were made for {}", in.brief(), in.count(axis_),
              axis_, shape_.in);
    shape_.n = in.count(0, axis_);
    std::vector<int> out(in.dims().begin(), in.dims().begin() + axis_);
    out.push_back(shape_.out);
    top[0]->reshape(Shape(out));
  }

  void compute(const Blobs& bottom, const Blobs& top) override {
    withType(context().dtype, [&]<class T>() {
      kernels::ipForward<T>(kernels(), shape_, bottom[0]->data<T>(), params()[0]->data<T>(),
                            params().size() > 1 ? params()[1]->data<T>() : nullptr, top[0]->mutableData<T>());
    });
  }

  void gradient(const Blobs& top, const std::vector<bool>& down, const Blobs& bottom) override {
    withType(context().dtype, [&]<class T>() {
      const T* dy = top[0]->diff<T>();
      if (paramPropagates(0) && !defersGradient())
        kernels::ipBackwardWeights<T>(kernels(), shape_, bottom[0]->data<T>(), dy, params()[0]->mutableDiff<T>(),
                                      addsGradients());
      if (params().size() > 1 && paramPropagates(1))
        kernels::ipBackwardBias<T>(kernels(), shape_, dy, params()[1]->mutableDiff<T>(), addsGradients());
      if (down[0])
        kernels::ipBackwardData<T>(kernels(), shape_, dy, params()[0]->data<T>(), bottom[0]->mutableDiff<T>());
    });
  }

 private:
  int axis_ = 1;
  kernels::IpShape shape_{};
};

}  // namespace

void addInnerProduct(LayerRegistry& r) { r.add<InnerProduct>("InnerProduct", "fully connected layer"); }

}  // namespace crema::layers
