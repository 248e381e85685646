// Sums and products for each channel.
#pragma once
#include <cmath>

#include "kernels/channels.h"

namespace crema::kernels::ref {

// body(channel, element), row by row.
template <class Body>
void eachElement(const ChannelShape& s, const Body& body) {
  for (int o = 0; o < s.outer; ++o)
    for (int c = 0; c < s.channels; ++c) {
      const int64_t row = (int64_t{o} * s.channels + c) * s.inner;
      for (int64_t i = row; i < row + s.inner; ++i) body(c, i);
    }
}
inline double at(const double* of, int c) { return of ? of[c] : 0; }

template <class T>
void channelSums(const ChannelShape& s, const T* x, double* sums) {
  for (int c = 0; c < s.channels; ++c) sums[c] = 0;
  eachElement(s, [&](int c, int64_t i) { sums[c] += double{x[i]}; });
}

template <class T>
void channelDots(const ChannelShape& s, const T* a, const double* shiftA, const T* b, const double* shiftB,
                 double* sums) {
  for (int c = 0; c < s.channels; ++c) sums[c] = 0;
  eachElement(s, [&](int c, int64_t i) { sums[c] += (a[i] - at(shiftA, c)) * (b[i] - at(shiftB, c)); });
}

template <class T>
void channelAffine(const ChannelShape& s, const T* x, const double* shift, const double* factor, const double* offset,
                   T* y) {
  const auto of = [](const double* numbers, int c) { return static_cast<T>(at(numbers, c)); };
  eachElement(s, [&](int c, int64_t i) { y[i] = std::fma(x[i] - of(shift, c), of(factor, c), of(offset, c)); });
}

template <class T>
void channelMix(const ChannelShape& s, const T* x, const double* shiftX, const T* y, const double* shiftY,
                const double* q, const double* p, T* z) {
  const auto of = [](const double* numbers, int c) { return static_cast<T>(numbers[c]); };
  eachElement(
      s, [&](int c, int64_t i) { z[i] = of(p, c) * std::fma(of(q, c), y[i] - of(shiftY, c), x[i] - of(shiftX, c)); });
}

}  // namespace crema::kernels::ref
