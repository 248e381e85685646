// Local response normalization across channels.
#pragma once
#include <algorithm>
#include <cmath>

#include "kernels/kernels.h"

namespace crema::kernels::ref {

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

}  // namespace crema::kernels::ref
