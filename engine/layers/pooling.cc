// Pooling over planes of a 4-axis blob: MAX (first maximum in scan order, strict >; padding never wins) or AVE
// (divisor: the window clipped to the padded image). Output size ceil((in + 2 pad - kernel) / stride) + 1, or floor
// with round_mode FLOOR; with any padding a last window that would start beyond input + pad is dropped.
//   MAX: dx[winner] += dy;  AVE: dx[every x of the window] += dy / divisor
// Options (pooling_param): pool, kernel_size | kernel_h/w, stride, pad, global_pooling, round_mode. A second top (MAX):
// the winner's index h*W + w in its plane, as a number. Windows without any input (kernel < stride, ceil) give 0, where
// Caffe gives -FLT_MAX or NaN.
#include <cmath>

#include "layers/builtin.h"

namespace crema {
namespace {

class Pooling : public Layer {
 public:
  using Layer::Layer;
  Arity arity() const override {
    const bool max = param_.pooling_param().pool() == caffe::PoolingParameter::MAX;
    return {1, 1, 1, max ? 2 : 1};
  }

 protected:
  void configure(const Blobs&, const Blobs&) override {
    const auto& p = param_.pooling_param();
    if (p.pool() == caffe::PoolingParameter::STOCHASTIC)
      invalid("pool: STOCHASTIC needs a GPU in Caffe and is not offered; use MAX or AVE");
    const bool sides = p.has_kernel_h() || p.has_kernel_w();
    if (p.global_pooling()) {
      if (p.has_kernel_size() || sides) invalid("global_pooling pools the whole plane: remove kernel_size");
      if (p.pad() || p.pad_h() || p.pad_w() || p.stride() != 1 || p.has_stride_h() || p.has_stride_w())
        invalid("global_pooling needs pad 0 and stride 1");
      return;
    }
    if (p.has_kernel_size() == sides) invalid("give either kernel_size or kernel_h and kernel_w");
    if (sides && !(p.has_kernel_h() && p.has_kernel_w())) invalid("kernel_h and kernel_w are both needed");
    if (p.has_pad() && (p.has_pad_h() || p.has_pad_w())) invalid("give either pad or pad_h and pad_w, not both");
    if (p.has_stride() && (p.has_stride_h() || p.has_stride_w()))
      invalid("give either stride or stride_h and stride_w, not both");
    shape_.kh = static_cast<int>(sides ? p.kernel_h() : p.kernel_size());
    shape_.kw = static_cast<int>(sides ? p.kernel_w() : p.kernel_size());
    shape_.strideH = static_cast<int>(p.has_stride_h() ? p.stride_h() : p.stride());
    shape_.strideW = static_cast<int>(p.has_stride_w() ? p.stride_w() : p.stride());
    shape_.padH = static_cast<int>(p.has_pad_h() ? p.pad_h() : p.pad());
    shape_.padW = static_cast<int>(p.has_pad_w() ? p.pad_w() : p.pad());
    constexpr int kMost = 1 << 24;  // as in window.cc
    if (shape_.kh > kMost || shape_.kw > kMost || shape_.strideH > kMost || shape_.strideW > kMost)
      invalid("kernel {}x{} and stride {}x{} must not exceed {}", shape_.kh, shape_.kw, shape_.strideH, shape_.strideW,
              kMost);
    if (shape_.kh <= 0 || shape_.kw <= 0) invalid("kernel {}x{} must be positive", shape_.kh, shape_.kw);
    if (shape_.strideH <= 0 || shape_.strideW <= 0)
      invalid("stride {}x{} must be positive", shape_.strideH, shape_.strideW);
    if (shape_.padH < 0 || shape_.padW < 0 || shape_.padH >= shape_.kh || shape_.padW >= shape_.kw)
      invalid("pad {}x{} must be smaller than the kernel {}x{}", shape_.padH, shape_.padW, shape_.kh, shape_.kw);
  }

  void reshape(const Blobs& bottom, const Blobs& top) override {
    const Shape& in = bottom[0]->shape();
    if (in.axes() != 4) invalid("Pooling needs 4 axes (num, channels, height, width), the bottom is {}", in.brief());
    shape_.n = in[0], shape_.c = in[1], shape_.h = in[2], shape_.w = in[3];
    if (param_.pooling_param().global_pooling()) shape_.kh = shape_.h, shape_.kw = shape_.w;
    shape_.oh = outputs(shape_.h, shape_.kh, shape_.strideH, shape_.padH);
    shape_.ow = outputs(shape_.w, shape_.kw, shape_.strideW, shape_.padW);
    if (shape_.oh <= 0 || shape_.ow <= 0)
      invalid("kernel {}x{} exceeds the padded input (bottom is {}, pad {}x{})", shape_.kh, shape_.kw, in.brief(),
              shape_.padH, shape_.padW);
    for (Blob* t : top) t->reshape(Shape{shape_.n, shape_.c, shape_.oh, shape_.ow});
    if (max()) mask_.resize(static_cast<size_t>(top[0]->count()));
  }

  void compute(const Blobs& bottom, const Blobs& top) override {
    withType(context().dtype, [&]<class T>() {
      if (!max()) return kernels::avePoolForward<T>(kernels(), shape_, bottom[0]->data<T>(), top[0]->mutableData<T>());
      kernels::maxPoolForward<T>(kernels(), shape_, bottom[0]->data<T>(), top[0]->mutableData<T>(), mask_.data());
      if (top.size() > 1) std::copy(mask_.begin(), mask_.end(), top[1]->mutableData<T>());
    });
  }

  void gradient(const Blobs& top, const std::vector<bool>& down, const Blobs& bottom) override {
    if (!down[0]) return;
    withType(context().dtype, [&]<class T>() {
      if (max())
        kernels::maxPoolBackward<T>(kernels(), shape_, top[0]->diff<T>(), mask_.data(), bottom[0]->mutableDiff<T>());
      else
        kernels::avePoolBackward<T>(kernels(), shape_, top[0]->diff<T>(), bottom[0]->mutableDiff<T>());
    });
  }

 private:
  bool max() const { return param_.pooling_param().pool() == caffe::PoolingParameter::MAX; }

  int outputs(int in, int kernel, int stride, int pad) const {
    const bool floor = param_.pooling_param().round_mode() == caffe::PoolingParameter::FLOOR;
    const int room = in + 2 * pad - kernel;
    if (room < 0 && floor) return 0;
    int out =
        (floor ? room / stride : static_cast<int>(std::ceil(static_cast<float>(room) / static_cast<float>(stride)))) +
        1;
    if ((shape_.padH || shape_.padW) && (out - 1) * stride >= in + pad) --out;
    return out;
  }

  kernels::PoolShape shape_{};
  std::vector<int32_t> mask_;
};

}  // namespace

void addPooling(LayerRegistry& r) { r.add<Pooling>("Pooling", "maximum or average over windows"); }

}  // namespace crema
