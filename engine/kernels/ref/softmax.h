// Softmax; kernels.cc computes the same sums in other loops.
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/kernels.h"

namespace crema::kernels::ref {

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

}  // namespace crema::kernels::ref
