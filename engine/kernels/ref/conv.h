// Convolution and its gradients.
#pragma once
#include <algorithm>
#include <vector>

#include "kernels/kernels.h"
#include "kernels/ref/epilogue.h"

namespace crema::kernels::ref {

// Calls use(weight index, input index, output index, count) for the products of one convolution, row by row of each tap: output
// + j takes input + j strideW, j < count.
template <class Use>
void products(const ConvShape& s, int n, int o, Use use) {
  const int icg = s.ic / s.groups, ocg = s.oc / s.groups, group = o / ocg, oh = s.oh(), ow = s.ow();
  // The first output whose input lies at `v` or behind it.
  const auto first = [&](int v) { return v > 0 ? (v + s.strideW - 1) / s.strideW : 0; };
  for (int i = 0; i < icg; ++i)
    for (int a = 0; a < s.kh; ++a)
      for (int b = 0; b < s.kw; ++b) {
        const int64_t weight = ((int64_t{o} * icg + i) * s.kh + a) * s.kw + b;
        const int shift = b * s.dilW - s.padW, from = first(-shift), to = std::min(ow, first(s.w - shift));
        if (from >= to) continue;
        for (int y = 0; y < oh; ++y) {
          const int iy = y * s.strideH - s.padH + a * s.dilH;
          if (iy < 0 || iy >= s.h) continue;
          const int64_t inputs = ((int64_t{n} * s.ic + group * icg + i) * s.h + iy) * s.w,
                        outputs = ((int64_t{n} * s.oc + o) * oh + y) * ow;
          use(weight, inputs + int64_t{from} * s.strideW + shift, outputs + from, to - from);
        }
      }
}

template <class T>
void storeSums(const std::vector<double>& sums, T* out, bool accumulate) {
  for (size_t i = 0; i < sums.size(); ++i)
    out[i] = static_cast<T>(sums[i] + (accumulate ? static_cast<double>(out[i]) : 0.0));
}

template <class T>
void convForward(const ConvShape& s, const T* x, const T* w, const T* bias, T* y, const Epilogue<T>& then = {}) {
  const int64_t plane = int64_t{s.oh()} * s.ow();
  std::vector<double> sums(static_cast<size_t>(s.n * s.oc * plane), 0.0);
  for (int n = 0; n < s.n; ++n)
    for (int o = 0; o < s.oc; ++o)
      products(s, n, o, [&](int64_t k, int64_t i, int64_t p, int count) {
        for (int j = 0; j < count; ++j)
          sums[static_cast<size_t>(p + j)] += static_cast<double>(w[k]) * x[i + int64_t{j} * s.strideW];
      });
  for (size_t i = 0; i < sums.size(); ++i)
    y[i] = static_cast<T>(sums[i] + (bias ? bias[static_cast<int64_t>(i) / plane % s.oc] : T(0)));
  applySteps(then, s.n, s.oc, plane, y);
}

template <class T>
void convBackwardData(const ConvShape& s, const T* dy, const T* w, T* dx) {
  std::vector<double> sums(static_cast<size_t>(s.n) * s.ic * s.h * s.w, 0.0);
  for (int n = 0; n < s.n; ++n)
    for (int o = 0; o < s.oc; ++o)
      products(s, n, o, [&](int64_t k, int64_t i, int64_t p, int count) {
        for (int j = 0; j < count; ++j)
          sums[static_cast<size_t>(i + int64_t{j} * s.strideW)] += static_cast<double>(w[k]) * dy[p + j];
      });
  storeSums(sums, dx, false);
}

template <class T>
void convBackwardWeights(const ConvShape& s, const T* x, const T* dy, T* dw, bool accumulate) {
  std::vector<double> sums(static_cast<size_t>(s.oc) * (s.ic / s.groups) * s.kh * s.kw, 0.0);
  for (int n = 0; n < s.n; ++n)
    for (int o = 0; o < s.oc; ++o)
      products(s, n, o, [&](int64_t k, int64_t i, int64_t p, int count) {
        double& sum = sums[static_cast<size_t>(k)];
        for (int j = 0; j < count; ++j) sum += static_cast<double>(x[i + int64_t{j} * s.strideW]) * dy[p + j];
      });
  storeSums(sums, dw, accumulate);
}

template <class T>
void convBackwardBias(const ConvShape& s, const T* dy, T* dbias, bool accumulate) {
  const int64_t plane = int64_t{s.oh()} * s.ow();
  std::vector<double> sums(static_cast<size_t>(s.oc), 0.0);
  for (int64_t i = 0; i < s.n * s.oc * plane; ++i) sums[static_cast<size_t>(i / plane % s.oc)] += dy[i];
  storeSums(sums, dbias, accumulate);
}

}  // namespace crema::kernels::ref
