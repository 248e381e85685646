// Local response normalization, across channels and within one.
#pragma once
#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/kernels.h"

namespace crema::kernels::ref {

// What forward and backward passes compute of x.
template <class T>
struct LrnValues {
  explicit LrnValues(size_t count) : scale(count), y(count) {}
  std::vector<T> scale, y;
};

template <class T>
LrnValues<T> lrnValues(const LrnShape& s, const T* x) {
  const int half = s.size / 2;
  LrnValues<T> all(static_cast<size_t>(int64_t{s.n} * s.c * s.hw));
  for (int n = 0; n < s.n; ++n)
    for (int c = 0; c < s.c; ++c)
      for (int p = 0; p < s.hw; ++p) {
        double sum = 0;
        for (int k = std::max(0, c - half); k <= std::min(s.c - 1, c + half); ++k) {
          const double v = x[(int64_t{n} * s.c + k) * s.hw + p];
          sum += v * v;
        }
        const auto i = static_cast<size_t>((int64_t{n} * s.c + c) * s.hw + p);
        const double at = s.k + s.alpha / s.size * sum;
        all.scale[i] = static_cast<T>(at);
        all.y[i] = static_cast<T>(x[i] * std::pow(at, -s.beta));
      }
  return all;
}

template <class T>
void lrnForward(const LrnShape& s, const T* x, T* y) {
  const std::vector<T> all = lrnValues(s, x).y;
  std::copy(all.begin(), all.end(), y);
}

template <class T>
void lrnBackward(const LrnShape& s, const T* x, const T* dy, T* dx) {
  const int half = s.size / 2;
  const auto [scale, y] = lrnValues(s, x);
  for (int n = 0; n < s.n; ++n)
    for (int c = 0; c < s.c; ++c)
      for (int p = 0; p < s.hw; ++p) {
        double sum = 0;
        for (int k = std::max(0, c - half); k <= std::min(s.c - 1, c + half); ++k) {
          const auto j = static_cast<size_t>((int64_t{n} * s.c + k) * s.hw + p);
          sum += static_cast<double>(dy[j]) * y[j] / scale[j];
        }
        const auto i = static_cast<size_t>((int64_t{n} * s.c + c) * s.hw + p);
        dx[i] = static_cast<T>(dy[i] * std::pow(static_cast<double>(scale[i]), -s.beta) -
                               2 * s.alpha * s.beta / s.size * x[i] * sum);
      }
}

// body(i, sum of term(j) over the window of i) for each number i of each plane.
template <class Term, class Body>
void eachWindow(const LrnWithinShape& s, Term term, Body body) {
  const int half = s.size / 2;
  for (int64_t plane = 0; plane < int64_t{s.n} * s.c; ++plane)
    for (int y = 0; y < s.h; ++y)
      for (int x = 0; x < s.w; ++x) {
        double sum = 0;
        for (int a = std::max(0, y - half); a <= std::min(s.h - 1, y + half); ++a)
          for (int b = std::max(0, x - half); b <= std::min(s.w - 1, x + half); ++b)
            sum += term((plane * s.h + a) * s.w + b);
        body((plane * s.h + y) * s.w + x, sum);
      }
}

template <class T>
void lrnWithinForward(const LrnWithinShape& s, const T* x, T* scale, T* y) {
  const double each = s.alpha / (double(s.size) * s.size);
  eachWindow(
      s, [&](int64_t i) { return static_cast<double>(x[i]) * x[i]; },
      [&](int64_t i, double sum) {
        const double at = 1 + each * sum;
        if (scale) scale[i] = static_cast<T>(at);
        y[i] = static_cast<T>(x[i] * std::pow(at, -s.beta));
      });
}

// dx = dy scale^-beta - (2 alpha beta / size^2) x * sum over the window of x dy scale^(-beta - 1)
template <class T>
void lrnWithinBackward(const LrnWithinShape& s, const T* x, const T* scale, const T* dy, T* dx) {
  const double each = 2 * s.alpha * s.beta / (double(s.size) * s.size);
  const auto power = [&](int64_t i, double e) { return std::pow(static_cast<double>(scale[i]), e); };
  eachWindow(
      s, [&](int64_t i) { return static_cast<double>(x[i]) * dy[i] * power(i, -s.beta - 1); },
      [&](int64_t i, double sum) { dx[i] = static_cast<T>(dy[i] * power(i, -s.beta) - each * x[i] * sum); });
}

}  // namespace crema::kernels::ref
