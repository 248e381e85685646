#include "layers/spatial_conv.h"

#include <algorithm>
#include <numeric>

namespace crema::layers {
namespace {

int product(const std::vector<int>& v, size_t from, size_t to) {
  return Shape(std::vector<int>(v.begin() + static_cast<int64_t>(from), v.begin() + static_cast<int64_t>(to))).count();
}

std::vector<int> firsts(const std::vector<int>& v, size_t count) {
  return {v.begin(), v.begin() + static_cast<int64_t>(count)};
}

}  // namespace

void SpatialConv::reshape(const ConvolutionWindow& w, int n, int ic, int oc, int groups, const std::vector<int>& in,
                          const std::vector<int>& out) {
  const size_t axes = in.size(), lead = axes > 2 ? axes - 2 : 0;
  const ConvolutionWindow front{firsts(w.kernel, lead), firsts(w.stride, lead), firsts(w.pad, lead),
                                firsts(w.dilation, lead)};
  const std::vector<int> frontIn = firsts(in, lead), frontOut = firsts(out, lead);
  direct_ = lead == 0, n_ = n, ic_ = ic;
  leading_ = product(in, 0, lead), positions_ = product(out, 0, lead), k_ = product(w.kernel, 0, lead);
  taps_ = tapTable(front, frontIn, frontOut);
  shape_ = {n, ic, 1, 1, oc, 1, 1};
  shape_.groups = groups;
  // A stride larger than the input gives one position; it is clamped so that products of strides in kernels do not
  // overflow.
  const auto stride = [&](size_t i) {
    const int room = in[i] + 2 * w.pad[i] - (w.dilation[i] * (w.kernel[i] - 1) + 1);
    return room < 0 ? w.stride[i] : std::min(w.stride[i], room + 1);
  };
  if (axes) {
    const size_t i = axes - 1;
    shape_.w = in[i], shape_.kw = w.kernel[i], shape_.strideW = stride(i), shape_.padW = w.pad[i];
    shape_.dilW = w.dilation[i];
  }
  if (axes > 1) {
    const size_t i = axes - 2;
    shape_.h = in[i], shape_.kh = w.kernel[i], shape_.strideH = stride(i), shape_.padH = w.pad[i];
    shape_.dilH = w.dilation[i];
  }
  if (direct_) return;
  shape_.n = positions_, shape_.ic = Shape{ic, k_}.count();
  gathered_.reshape(Shape{positions_, shape_.ic, shape_.h, shape_.w});
  pictures_.reshape(Shape{positions_, oc, shape_.oh(), shape_.ow()});
}

template <class T>
void SpatialConv::forward(kernels::Context& c, const T* x, const T* w, const T* bias, T* y) {
  if (direct_) return kernels::convForward<T>(c, shape_, x, w, bias, y);
  for (int n = 0; n < n_; ++n) {
    gather(c, x + n * inImage());
    kernels::convForward<T>(c, shape_, gathered_.data<T>(), w, bias, pictures_.mutableData<T>());
    transpose(c, pictures_.data<T>(), y + n * outImage(), positions_, shape_.oc);
  }
}

template <class T>
void SpatialConv::backwardData(kernels::Context& c, const T* dy, const T* w, T* dx) {
  if (direct_) return kernels::convBackwardData<T>(c, shape_, dy, w, dx);
  for (int n = 0; n < n_; ++n) {
    transpose(c, dy + n * outImage(), pictures_.mutableData<T>(), shape_.oc, positions_);
    kernels::convBackwardData<T>(c, shape_, pictures_.data<T>(), w, gathered_.mutableData<T>());
    scatter(c, dx + n * inImage());
  }
}

template <class T>
void SpatialConv::backwardWeights(kernels::Context& c, const T* x, const T* dy, T* dw) {
  if (direct_) return kernels::convBackwardWeights<T>(c, shape_, x, dy, dw, true);
  for (int n = 0; n < n_; ++n) {
    gather(c, x + n * inImage());
    transpose(c, dy + n * outImage(), pictures_.mutableData<T>(), shape_.oc, positions_);
    kernels::convBackwardWeights<T>(c, shape_, gathered_.data<T>(), pictures_.data<T>(), dw, true);
  }
}

template <class T>
void SpatialConv::gather(kernels::Context& c, const T* x) {
  const int64_t plane = int64_t{shape_.h} * shape_.w;
  T* to = gathered_.mutableData<T>();
  c.pool().run(positions_, [&](int p, int) {
    for (int i = 0; i < ic_; ++i)
      for (int k = 0; k < k_; ++k) {
        T* out = to + ((int64_t{p} * ic_ + i) * k_ + k) * plane;
        const int64_t from = taps_[static_cast<size_t>(int64_t{k} * positions_ + p)];
        if (from < 0)
          std::fill_n(out, plane, T(0));
        else
          std::copy_n(x + (int64_t{i} * leading_ + from) * plane, plane, out);
      }
  });
}

template <class T>
void SpatialConv::scatter(kernels::Context& c, T* dx) {
  const int64_t plane = int64_t{shape_.h} * shape_.w;
  const T* from = gathered_.data<T>();
  c.pool().run(ic_, [&](int i, int) {
    T* out = dx + int64_t{i} * leading_ * plane;
    std::fill_n(out, leading_ * plane, T(0));
    for (int p = 0; p < positions_; ++p)
      for (int k = 0; k < k_; ++k) {
        const int64_t at = taps_[static_cast<size_t>(int64_t{k} * positions_ + p)];
        if (at < 0) continue;
        const T* in = from + ((int64_t{p} * ic_ + i) * k_ + k) * plane;
        for (int64_t j = 0; j < plane; ++j) out[at * plane + j] += in[j];
      }
  });
}

// rows x columns planes of the output's last two axes become columns x rows.
template <class T>
void SpatialConv::transpose(kernels::Context& c, const T* from, T* to, int rows, int columns) const {
  const int64_t plane = int64_t{shape_.oh()} * shape_.ow();
  c.pool().run(rows, [&](int r, int) {
    for (int64_t k = 0; k < columns; ++k)
      std::copy_n(from + (int64_t{r} * columns + k) * plane, plane, to + (k * rows + r) * plane);
  });
}

template <class T>
void addChannelSums(kernels::Context& c, int items, int channels, int positions, const T* d, T* dbias) {
  kernels::ConvShape s{items, channels, positions, 1, channels, 1, 1};
  kernels::convBackwardBias<T>(c, s, d, dbias, true);
}

#define INSTANCE(T)                                                                           \
  template void SpatialConv::forward<T>(kernels::Context&, const T*, const T*, const T*, T*); \
  template void SpatialConv::backwardData<T>(kernels::Context&, const T*, const T*, T*);      \
  template void SpatialConv::backwardWeights<T>(kernels::Context&, const T*, const T*, T*);   \
  template void addChannelSums<T>(kernels::Context&, int, int, int, const T*, T*);
INSTANCE(float)
INSTANCE(double)
#undef INSTANCE

}  // namespace crema::layers
