// Pooling and its gradients.
#pragma once
#include <algorithm>

#include "kernels/kernels.h"

namespace crema::kernels::ref {

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

template <class T>
void maxPoolForward(const PoolShape& s, const T* x, T* y, int32_t* mask) {
  windows(s, [&](int p, int64_t out, int y0, int y1, int x0, int x1, int) {
    const T* plane = x + int64_t{p} * s.h * s.w;
    int32_t best = -1;
    for (int a = y0; a < y1; ++a)
      for (int b = x0; b < x1; ++b)
        if (best < 0 || plane[a * s.w + b] > plane[best]) best = a * s.w + b;
    y[out] = best < 0 ? T(0) : plane[best];
    if (mask) mask[out] = s.positive && !(y[out] > 0) ? -1 : best;
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

}  // namespace crema::kernels::ref
