// Pooling over planes of a 4-axis blob: MAX (first maximum in scan order, strict >; padding is never chosen) or AVE
// (divisor: the window clipped to the padded image). Output size ceil((in + 2 pad - kernel) / stride) + 1, or floor
// with round_mode FLOOR; with any padding a last window that would start beyond input + pad is dropped.
//   MAX: dx[winner] += dy;  AVE: dx[every x of the window] += dy / divisor
//   STOCHASTIC (values >= 0, no padding; on GPUs alone in Caffe): TRAIN one value of the window, drawn in proportion to
//   the values, output i by number i of the stream of (seed, layer, step, rank); TEST sum x^2 / sum x (pool_windows.h)
// Options (pooling_param): pool, kernel_size | kernel_h/w, stride, pad, global_pooling, round_mode. A second top (MAX):
// the winner's index h*W + w in its plane, as a number. A last window outside the input (kernel < stride, CEIL, no pad)
// has an element in the top, as in Caffe, with value 0, index -1 and no gradient. (Caffe: -FLT_MAX or NaN, and a write
// out of range in the backward pass.)
#include <algorithm>
#include <array>
#include <cmath>

#include "layers/builtin.h"
#include "layers/pool_group.h"
#include "layers/pool_windows.h"
#include "layers/window.h"

namespace crema::layers {
namespace {

class Pooling : public Layer, public PoolLeader {
 public:
  Pooling(const caffe::LayerParameter& p, const LayerContext& c) : Layer(p, c), inside_(c.dtype) {}
  Arity arity() const override { return {1, 1, 1, max() ? 2 : 1}; }

  Reads readsBackward() const override { return {.bottoms = stochastic(), .tops = false}; }
  bool leadsPool() const override { return max(); }
  void stopGradients() override { shape_.positive = true; }

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
    const auto sizes = [&] { return std::array{shape_.n, shape_.c, shape_.h, shape_.w}; };
    const auto before = sizes();
    if (in.axes() != 4) invalid("Pooling needs 4 axes (num, channels, height, width), the bottom is {}", in.brief());
    shape_.n = in[0], shape_.c = in[1], shape_.h = in[2], shape_.w = in[3];
    if (param_.pooling_param().global_pooling()) shape_.kh = shape_.h, shape_.kw = shape_.w;
    const int rows = outputs(shape_.h, shape_.kh, shape_.strideH, shape_.padH);
    const int columns = outputs(shape_.w, shape_.kw, shape_.strideW, shape_.padW);
    shape_.oh = static_cast<int>(std::min<int64_t>(rows, (int64_t{shape_.h} + shape_.padH - 1) / shape_.strideH + 1));
    shape_.ow =
        static_cast<int>(std::min<int64_t>(columns, (int64_t{shape_.w} + shape_.padW - 1) / shape_.strideW + 1));
    if (rows <= 0 || columns <= 0 || shape_.h == 0 || shape_.w == 0)
      invalid("kernel {}x{} exceeds the padded input (bottom is {}, pad {}x{}); use a smaller kernel_size or more pad",
              shape_.kh, shape_.kw, in.brief(), shape_.padH, shape_.padW);
    for (Blob* t : top) t->reshape(Shape{shape_.n, shape_.c, rows, columns});
    if (sizes() != before) mask_.clear();
    if (emptyWindows(*top[0])) inside_.reshape(Shape{shape_.n, shape_.c, shape_.oh, shape_.ow});
  }

  void compute(const Blobs& bottom, const Blobs& top) override {
    const bool empty = emptyWindows(*top[0]);
    Blob& y = empty ? inside_ : *top[0];
    withType(context().dtype, [&]<class T>() {
      if (stochastic())
        draw<T>(*bottom[0], y);
      else if (average())
        kernels::avePoolForward<T>(kernels(), shape_, bottom[0]->data<T>(), y.mutableData<T>());
      else
        kernels::maxPoolForward<T>(kernels(), shape_, bottom[0]->data<T>(), y.mutableData<T>(),
                                   context().needsBackward || top.size() > 1 ? mask() : nullptr);
      if (empty) spread(y.data<T>(), T{0}, *top[0], top[0]->mutableData<T>());
      if (top.size() > 1) spread(mask(), T{-1}, *top[1], top[1]->mutableData<T>());
    });
  }

  void gradient(const Blobs& top, const std::vector<bool>& down, const Blobs& bottom) override {
    if (!down[0]) return;
    const bool empty = emptyWindows(*top[0]);
    Blob& y = empty ? inside_ : *top[0];
    withType(context().dtype, [&]<class T>() {
      if (empty) gather(*top[0], top[0]->diff<T>(), y.mutableDiff<T>());
      if (stochastic())
        drawBack<T>(y, *bottom[0]);
      else if (max())
        kernels::maxPoolBackward<T>(kernels(), shape_, y.diff<T>(), mask(), bottom[0]->mutableDiff<T>());
      else
        kernels::avePoolBackward<T>(kernels(), shape_, y.diff<T>(), bottom[0]->mutableDiff<T>());
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
  // Whether the top has a last row or column of windows outside the input, which shape_ leaves out.
  bool emptyWindows(const Blob& top) const { return top.shape().count(1) != int64_t{shape_.c} * shape_.oh * shape_.ow; }
  // Copies planes of shape_ into those of `top`, with `nothing` in windows outside the input; and back.
  template <class From, class T>
  void spread(const From* from, T nothing, const Blob& top, T* to) const {
    const int rows = top.shape()[2], columns = top.shape()[3];
    for (int64_t plane = 0; plane < int64_t{shape_.n} * shape_.c; ++plane)
      for (int r = 0; r < rows; ++r)
        for (int c = 0; c < columns; ++c) *to++ = r < shape_.oh && c < shape_.ow ? static_cast<T>(*from++) : nothing;
  }
  template <class T>
  void gather(const Blob& top, const T* from, T* to) const {
    const int rows = top.shape()[2], columns = top.shape()[3];
    for (int64_t plane = 0; plane < int64_t{shape_.n} * shape_.c; ++plane)
      for (int r = 0; r < rows; ++r)
        for (int c = 0; c < columns; ++c, ++from)
          if (r < shape_.oh && c < shape_.ow) *to++ = *from;
  }
  template <class T>
  void draw(const Blob& bottom, Blob& top) {
    poolWindows<T>(kernels(), rule(), windows(), bottom.data<T>(), top.mutableData<T>(), top.shape().count(1), mask(),
                   random(RandomPurpose::kPooling), 0);
  }
  template <class T>
  void drawBack(const Blob& top, Blob& bottom) {
    bottom.fillDiff(0);
    addPoolGradient<T>(kernels(), rule(), windows(), bottom.data<T>(), top.diff<T>(), top.shape().count(1), mask(),
                       bottom.mutableDiff<T>());
  }

  // Indices in the plane.
  int32_t* mask() {
    const size_t outputs = static_cast<size_t>(int64_t{shape_.n} * shape_.c * shape_.oh * shape_.ow);
    if (mask_.size() != outputs) mask_.assign(outputs, 0);
    return mask_.data();
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
    if (out > INT32_MAX) invalid("{} windows on one axis are more than a blob can have", out);
    return static_cast<int>(out);
  }

  kernels::PoolShape shape_{};  // for the windows that overlap the input
  Blob inside_;                 // their outputs, where the top also has windows outside
  std::vector<int32_t> mask_;
};

}  // namespace

void addPooling(LayerRegistry& r) { r.add<Pooling>("Pooling", "maximum or average over windows"); }

}  // namespace crema::layers
