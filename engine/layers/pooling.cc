// Pooling over planes of a 4-axis blob: MAX (first maximum in scan order, strict >; padding never wins) or AVE
// (divisor: the window clipped to the padded image). Output size ceil((in + 2 pad - kernel) / stride) + 1, or floor
// with round_mode FLOOR; with any padding a last window that would start beyond input + pad is dropped.
//   MAX: dx[winner] += dy;  AVE: dx[every x of the window] += dy / divisor
//   STOCHASTIC (values >= 0, no padding; on GPUs alone in Caffe): TRAIN one value of the window, drawn in proportion to
//   the values, output i by number i of the stream of (seed, layer, step, rank); TEST sum x^2 / sum x (pool_windows.h)
// Options (pooling_param): pool, kernel_size | kernel_h/w, stride, pad, global_pooling, round_mode. A second top (MAX):
// the winner's index h*W + w in its plane, as a number. Windows that lie outside the input (kernel < stride, CEIL, no
// pad) are refused: Caffe gives -FLT_MAX or NaN there, and writes out of range on the way back.
#include <cmath>

#include "layers/builtin.h"
#include "layers/pool_windows.h"
#include "layers/window.h"

namespace crema {
namespace {

class Pooling : public Layer {
 public:
  using Layer::Layer;
  Arity arity() const override { return {1, 1, 1, max() ? 2 : 1}; }

 protected:
  void configure(const Blobs&, const Blobs&) override {
    const auto& p = param_.pooling_param();
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
    checkWindow();
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
    if (!average()) mask_.resize(static_cast<size_t>(top[0]->count()));
  }

  void compute(const Blobs& bottom, const Blobs& top) override {
    withType(context().dtype, [&]<class T>() {
      if (stochastic()) return draw<T>(*bottom[0], *top[0]);
      if (average())
        return kernels::avePoolForward<T>(kernels(), shape_, bottom[0]->data<T>(), top[0]->mutableData<T>());
      kernels::maxPoolForward<T>(kernels(), shape_, bottom[0]->data<T>(), top[0]->mutableData<T>(), mask_.data());
      if (top.size() > 1) std::copy(mask_.begin(), mask_.end(), top[1]->mutableData<T>());
    });
  }

  void gradient(const Blobs& top, const std::vector<bool>& down, const Blobs& bottom) override {
    if (!down[0]) return;
    withType(context().dtype, [&]<class T>() {
      if (stochastic())
        drawBack<T>(*top[0], *bottom[0]);
      else if (max())
        kernels::maxPoolBackward<T>(kernels(), shape_, top[0]->diff<T>(), mask_.data(), bottom[0]->mutableDiff<T>());
      else
        kernels::avePoolBackward<T>(kernels(), shape_, top[0]->diff<T>(), bottom[0]->mutableDiff<T>());
    });
  }

 private:
  bool is(caffe::PoolingParameter::PoolMethod method) const { return param_.pooling_param().pool() == method; }
  bool max() const { return is(caffe::PoolingParameter::MAX); }
  bool average() const { return is(caffe::PoolingParameter::AVE); }
  bool stochastic() const { return is(caffe::PoolingParameter::STOCHASTIC); }

  PoolRule rule() const { return training() ? PoolRule::kDraw : PoolRule::kExpect; }
  PoolWindows windows() const {
    const auto spans = [](int outputs, int kernel, int stride) {
      std::vector<PoolSpan> s;
      for (int i = 0; i < outputs; ++i) s.push_back({i * stride, i * stride + kernel});
      return s;
    };
    return {shape_.n,
            shape_.c,
            shape_.h,
            shape_.w,
            spans(shape_.oh, shape_.kh, shape_.strideH),
            spans(shape_.ow, shape_.kw, shape_.strideW)};
  }
  template <class T>
  void draw(const Blob& bottom, Blob& top) {
    poolWindows<T>(kernels(), rule(), windows(), bottom.data<T>(), top.mutableData<T>(), top.shape().count(1),
                   mask_.data(), random(RandomPurpose::kPooling), 0);
  }
  template <class T>
  void drawBack(const Blob& top, Blob& bottom) {
    bottom.fillDiff(0);
    addPoolGradient<T>(kernels(), rule(), windows(), bottom.data<T>(), top.diff<T>(), top.shape().count(1),
                       mask_.data(), bottom.mutableDiff<T>());
  }

  void checkWindow() const {
    if (shape_.kh > kLongestWindow || shape_.kw > kLongestWindow || shape_.strideH > kLongestWindow ||
        shape_.strideW > kLongestWindow)
      invalid("kernel {}x{} and stride {}x{} must not exceed {}", shape_.kh, shape_.kw, shape_.strideH, shape_.strideW,
              kLongestWindow);
    if (shape_.kh <= 0 || shape_.kw <= 0) invalid("kernel {}x{} must be positive", shape_.kh, shape_.kw);
    if (shape_.strideH <= 0 || shape_.strideW <= 0)
      invalid("stride {}x{} must be positive", shape_.strideH, shape_.strideW);
    if (shape_.padH < 0 || shape_.padW < 0 || shape_.padH >= shape_.kh || shape_.padW >= shape_.kw)
      invalid("pad {}x{} must be smaller than the kernel {}x{}", shape_.padH, shape_.padW, shape_.kh, shape_.kw);
    if (stochastic() && (shape_.padH || shape_.padW))
      invalid("Padding implemented only for average and max pooling: remove pad, {}x{}", shape_.padH, shape_.padW);
  }

  int outputs(int in, int kernel, int stride, int pad) const {
    const bool floor = param_.pooling_param().round_mode() == caffe::PoolingParameter::FLOOR;
    const int64_t room = int64_t{in} + 2 * pad - kernel;
    if (room < 0 && floor) return 0;
    const int64_t out =
        1 + (floor ? room / stride
                   : static_cast<int64_t>(std::ceil(static_cast<float>(room) / static_cast<float>(stride))));
    const bool beyond = (out - 1) * stride >= int64_t{in} + pad;
    if (beyond && (shape_.padH || shape_.padW)) return static_cast<int>(out - 1);
    if ((beyond && out > 0) || out > INT32_MAX)
      invalid(
          "the last window of {} would begin at {}, outside the input of {} (kernel {} below stride {}, where Caffe "
          "gives -FLT_MAX or NaN); use round_mode: FLOOR",
          out, (out - 1) * stride, in, kernel, stride);
    return static_cast<int>(out);
  }

  kernels::PoolShape shape_{};
  std::vector<int32_t> mask_;
};

}  // namespace

void addPooling(LayerRegistry& r) { r.add<Pooling>("Pooling", "maximum or average over windows"); }

}  // namespace crema
