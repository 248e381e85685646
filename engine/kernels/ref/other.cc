#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/ref/ref.h"

namespace crema::kernels::ref {

template <class T>
void ipForward(const IpShape& s, const T* x, const T* w, const T* bias, T* y) {
  for (int n = 0; n < s.n; ++n)
    for (int o = 0; o < s.out; ++o) {
      double sum = bias ? bias[o] : T(0);
      for (int i = 0; i < s.in; ++i)
        sum += static_cast<double>(x[int64_t{n} * s.in + i]) *
               w[s.transposed ? int64_t{i} * s.out + o : int64_t{o} * s.in + i];
      y[int64_t{n} * s.out + o] = static_cast<T>(sum);
    }
}

template <class T>
void ipBackwardData(const IpShape& s, const T* dy, const T* w, T* dx) {
  for (int n = 0; n < s.n; ++n)
    for (int i = 0; i < s.in; ++i) {
      double sum = 0;
      for (int o = 0; o < s.out; ++o)
        sum += static_cast<double>(dy[int64_t{n} * s.out + o]) *
               w[s.transposed ? int64_t{i} * s.out + o : int64_t{o} * s.in + i];
      dx[int64_t{n} * s.in + i] = static_cast<T>(sum);
    }
}

template <class T>
void ipBackwardWeights(const IpShape& s, const T* x, const T* dy, T* dw, bool accumulate) {
  for (int o = 0; o < s.out; ++o)
    for (int i = 0; i < s.in; ++i) {
      T& to = dw[s.transposed ? int64_t{i} * s.out + o : int64_t{o} * s.in + i];
      double sum = accumulate ? to : T(0);
      for (int n = 0; n < s.n; ++n) sum += static_cast<double>(dy[int64_t{n} * s.out + o]) * x[int64_t{n} * s.in + i];
      to = static_cast<T>(sum);
    }
}

template <class T>
void ipBackwardBias(const IpShape& s, const T* dy, T* dbias, bool accumulate) {
  for (int o = 0; o < s.out; ++o) {
    double sum = accumulate ? dbias[o] : T(0);
    for (int n = 0; n < s.n; ++n) sum += dy[int64_t{n} * s.out + o];
    dbias[o] = static_cast<T>(sum);
  }
}

namespace {

// Calls use(plane, output index, y0, y1, x0, x1, divisor) for every window: the part inside the image, and AVE's
// divisor.
template <class Use>
void windows(const PoolShape& s, Use use) {
  for (int p = 0; p < s.n * s.c; ++p)
    for (int oy = 0; oy < s.oh; ++oy)
      for (int ox = 0; ox < s.ow; ++ox) {
        const int top = oy * s.strideH - s.padH, left = ox * s.strideW - s.padW;
        const int bottom = std::min(top + s.kh, s.h + s.padH), right = std::min(left + s.kw, s.w + s.padW);
        use(p, (int64_t{p} * s.oh + oy) * s.ow + ox, std::max(top, 0), std::min(bottom, s.h), std::max(left, 0),
            std::min(right, s.w), std::max(0, bottom - top) * std::max(0, right - left));
      }
}

}  // namespace

template <class T>
void maxPoolForward(const PoolShape& s, const T* x, T* y, int32_t* mask) {
  windows(s, [&](int p, int64_t out, int y0, int y1, int x0, int x1, int) {
    const T* plane = x + int64_t{p} * s.h * s.w;
    int32_t best = -1;
    for (int a = y0; a < y1; ++a)
      for (int b = x0; b < x1; ++b)
        if (best < 0 || plane[a * s.w + b] > plane[best]) best = a * s.w + b;
    mask[out] = best;
    y[out] = best < 0 ? T(0) : plane[best];
  });
}

template <class T>
void maxPoolBackward(const PoolShape& s, const T* dy, const int32_t* mask, T* dx) {
  std::fill_n(dx, int64_t{s.n} * s.c * s.h * s.w, T(0));
  const int64_t outputs = int64_t{s.oh} * s.ow;
  for (int64_t i = 0; i < s.n * s.c * outputs; ++i)
    if (mask[i] >= 0) dx[i / outputs * s.h * s.w + mask[i]] += dy[i];
}

template <class T>
void avePoolForward(const PoolShape& s, const T* x, T* y) {
  windows(s, [&](int p, int64_t out, int y0, int y1, int x0, int x1, int divisor) {
    const T* plane = x + int64_t{p} * s.h * s.w;
    T sum = 0;
    for (int a = y0; a < y1; ++a)
      for (int b = x0; b < x1; ++b) sum += plane[a * s.w + b];
    y[out] = divisor > 0 ? sum / static_cast<T>(divisor) : T(0);
  });
}

template <class T>
void avePoolBackward(const PoolShape& s, const T* dy, T* dx) {
  std::fill_n(dx, int64_t{s.n} * s.c * s.h * s.w, T(0));
  windows(s, [&](int p, int64_t out, int y0, int y1, int x0, int x1, int divisor) {
    T* plane = dx + int64_t{p} * s.h * s.w;
    for (int a = y0; a < y1; ++a)
      for (int b = x0; b < x1; ++b) plane[a * s.w + b] += dy[out] / static_cast<T>(divisor);
  });
}

template <class T>
void lrnForward(const LrnShape& s, const T* x, T* scale, T* y) {
  const int half = s.size / 2;
  for (int n = 0; n < s.n; ++n)
    for (int c = 0; c < s.c; ++c)
      for (int p = 0; p < s.hw; ++p) {
        double sum = 0;
        for (int k = std::max(0, c - half); k <= std::min(s.c - 1, c + half); ++k) {
          const double v = x[(int64_t{n} * s.c + k) * s.hw + p];
          sum += v * v;
        }
        const int64_t i = (int64_t{n} * s.c + c) * s.hw + p;
        const double at = s.k + s.alpha / s.size * sum;
        scale[i] = static_cast<T>(at);
        y[i] = static_cast<T>(x[i] * std::pow(at, -s.beta));
      }
}

template <class T>
void lrnBackward(const LrnShape& s, const T* x, const T* y, const T* scale, const T* dy, T* dx) {
  const int half = s.size / 2;
  for (int n = 0; n < s.n; ++n)
    for (int c = 0; c < s.c; ++c)
      for (int p = 0; p < s.hw; ++p) {
        double sum = 0;
        for (int k = std::max(0, c - half); k <= std::min(s.c - 1, c + half); ++k) {
          const int64_t j = (int64_t{n} * s.c + k) * s.hw + p;
          sum += static_cast<double>(dy[j]) * y[j] / scale[j];
        }
        const int64_t i = (int64_t{n} * s.c + c) * s.hw + p;
        dx[i] = static_cast<T>(dy[i] * std::pow(static_cast<double>(scale[i]), -s.beta) -
                               2 * s.alpha * s.beta / s.size * x[i] * sum);
      }
}

template <class T>
void softmax(int outer, int axis, int inner, const T* x, T* y) {
  for (int o = 0; o < outer; ++o)
    for (int p = 0; p < inner; ++p) {
      const int64_t first = int64_t{o} * axis * inner + p;
      T most = -std::numeric_limits<T>::infinity();
      for (int c = 0; c < axis; ++c) most = std::max(most, x[first + int64_t{c} * inner]);
      double sum = 0;
      for (int c = 0; c < axis; ++c) {
        const int64_t i = first + int64_t{c} * inner;
        const double e = std::exp(static_cast<double>(x[i]) - most);
        y[i] = static_cast<T>(e);
        sum += e;
      }
      for (int c = 0; c < axis; ++c) {
        const int64_t i = first + int64_t{c} * inner;
        y[i] = static_cast<T>(y[i] / sum);
      }
    }
}

#define INSTANCE(T)                                                                          \
  template void ipForward<T>(const IpShape&, const T*, const T*, const T*, T*);              \
  template void ipBackwardData<T>(const IpShape&, const T*, const T*, T*);                   \
  template void ipBackwardWeights<T>(const IpShape&, const T*, const T*, T*, bool);          \
  template void ipBackwardBias<T>(const IpShape&, const T*, T*, bool);                       \
  template void maxPoolForward<T>(const PoolShape&, const T*, T*, int32_t*);                 \
  template void maxPoolBackward<T>(const PoolShape&, const T*, const int32_t*, T*);          \
  template void avePoolForward<T>(const PoolShape&, const T*, T*);                           \
  template void avePoolBackward<T>(const PoolShape&, const T*, T*);                          \
  template void lrnForward<T>(const LrnShape&, const T*, T*, T*);                            \
  template void lrnBackward<T>(const LrnShape&, const T*, const T*, const T*, const T*, T*); \
  template void softmax<T>(int, int, int, const T*, T*);
INSTANCE(float)
INSTANCE(double)
#undef INSTANCE

}  // namespace crema::kernels::ref
