// Inner product and its gradients.
#pragma once
#include "kernels/kernels.h"

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

}  // namespace crema::kernels::ref
