// Convolution (cross-correlation), one or more bottoms that share the weights:
//   y[n][o][p] = b[o] + sum_{i,k} w[o][i][k] x[n][i][p * stride - pad + k * dilation]
//   dx = transposed convolution of dy with w;  dw[o][i][k] = sum_{n,p} dy[n][o][p] x[n][i][...];  db[o] = sum_{n,p}
//   dy[n][o][p]
// Output size = floor((in + 2 pad - (dilation (kernel - 1) + 1)) / stride) + 1. Zero padding.
// Options (convolution_param): num_output, kernel_size | kernel_h/w, stride, pad, dilation, group, bias_term, fillers,
// axis. Parameters: weights num_output x channels/group x kernel..., bias num_output. One and two spatial axes run on
// the kernels; `engine` and `force_nd_im2col` are accepted and change nothing.
#include "layers/builtin.h"
#include "layers/window.h"

namespace crema {
namespace {

class Convolution : public Layer {
 public:
  using Layer::Layer;
  Arity arity() const override { return {1, -1, 1, -1, true}; }

 protected:
  void configure(const Blobs& bottom, const Blobs&) override {
    const auto& p = param_.convolution_param();
    const Shape& in = bottom[0]->shape();
    axis_ = in.canonicalAxis(p.axis());
    spatial_ = in.axes() - axis_ - 1;
    if (spatial_ > 2)
      invalid("{} spatial axes (bottom is {}); Convolution computes up to 2 so far", spatial_, in.brief());
    window_ = readWindow(p, spatial_);
    const int channels = in[axis_], group = static_cast<int>(p.group()), outputs = static_cast<int>(p.num_output());
    if (outputs <= 0) invalid("num_output must be given, positive and below 2^31, not {}", p.num_output());
    if (group <= 0 || channels % group || outputs % group)
      invalid("group {} must divide both the {} input channels and num_output {}", group, channels, outputs);
    std::vector<int> weights = {outputs, channels / group};
    for (int i = 0; i < spatial_; ++i) weights.push_back(window_.kernel[i + 2 - spatial_]);
    addParam(Shape(weights), p.weight_filler());
    if (p.bias_term()) addParam(Shape{outputs}, p.bias_filler());
  }

  void reshape(const Blobs& bottom, const Blobs& top) override {
    const Shape& in = bottom[0]->shape();
    if (in.axes() - axis_ - 1 != spatial_) invalid("the number of axes changed: bottom is now {}", in.brief());
    for (const Blob* b : bottom)
      if (!(b->shape() == in)) invalid("all bottoms need one shape: {} and {}", in.brief(), b->shape().brief());
    shape_ = kernelShape(in);
    std::vector<int> out(in.dims().begin(), in.dims().begin() + axis_);
    out.push_back(shape_.oc);
    if (spatial_ == 2) out.push_back(shape_.oh());
    if (spatial_ >= 1) out.push_back(shape_.ow());
    for (Blob* t : top) t->reshape(Shape(out));
  }

  void compute(const Blobs& bottom, const Blobs& top) override {
    withType(context().dtype, [&]<class T>() {
      for (size_t i = 0; i < bottom.size(); ++i)
        kernels::convForward<T>(kernels(), shape_, bottom[i]->data<T>(), params()[0]->data<T>(),
                                params().size() > 1 ? params()[1]->data<T>() : nullptr, top[i]->mutableData<T>());
    });
  }

  void gradient(const Blobs& top, const std::vector<bool>& down, const Blobs& bottom) override {
    withType(context().dtype, [&]<class T>() {
      for (size_t i = 0; i < top.size(); ++i) {
        const T* dy = top[i]->diff<T>();
        if (params().size() > 1 && paramPropagates(1))
          kernels::convBackwardBias<T>(kernels(), shape_, dy, params()[1]->mutableDiff<T>(), true);
        if (paramPropagates(0))
          kernels::convBackwardWeights<T>(kernels(), shape_, bottom[i]->data<T>(), dy, params()[0]->mutableDiff<T>(),
                                          true);
        if (down[i])
          kernels::convBackwardData<T>(kernels(), shape_, dy, params()[0]->data<T>(), bottom[i]->mutableDiff<T>());
      }
    });
  }

 private:
  kernels::ConvShape kernelShape(const Shape& in) const {
    const auto& p = param_.convolution_param();
    kernels::ConvShape s{};
    s.n = in.count(0, axis_);
    s.ic = in[axis_];
    s.oc = static_cast<int>(p.num_output());
    s.h = spatial_ == 2 ? in[axis_ + 1] : 1;
    s.w = spatial_ >= 1 ? in[in.axes() - 1] : 1;
    if (s.ic != params()[0]->shape()[1] * static_cast<int>(p.group()))
      invalid("the bottom has {} channels, the weights were made for {}", s.ic,
              params()[0]->shape()[1] * static_cast<int>(p.group()));
    s.kh = window_.kernel[0], s.kw = window_.kernel[1];
    s.strideH = window_.stride[0], s.strideW = window_.stride[1];
    s.padH = window_.pad[0], s.padW = window_.pad[1];
    s.dilH = window_.dilation[0], s.dilW = window_.dilation[1];
    s.groups = static_cast<int>(p.group());
    const int64_t reachH = int64_t{s.dilH} * (s.kh - 1) + 1, reachW = int64_t{s.dilW} * (s.kw - 1) + 1;
    const int64_t paddedH = int64_t{s.h} + 2 * s.padH, paddedW = int64_t{s.w} + 2 * s.padW;
    if (paddedH > INT32_MAX || paddedW > INT32_MAX) invalid("the padded input {}x{} is too large", paddedH, paddedW);
    if (reachH > paddedH || reachW > paddedW)
      invalid(
          "kernel {}x{} (dilation {}x{}) exceeds the padded input {}x{} (bottom is {}, pad {}x{}); use a smaller "
          "kernel_size or more pad",
          s.kh, s.kw, s.dilH, s.dilW, s.h + 2 * s.padH, s.w + 2 * s.padW, in.brief(), s.padH, s.padW);
    return s;
  }

  int axis_ = 1, spatial_ = 2;
  Window window_;
  kernels::ConvShape shape_{};
};

}  // namespace

void addConvolution(LayerRegistry& r) { r.add<Convolution>("Convolution", "cross-correlation with learnt filters"); }

}  // namespace crema
