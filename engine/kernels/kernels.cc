// Kernels without vector code: softmax, whose time goes into exp(), and reductions in double.
#include "kernels/kernels.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace crema::kernels {

namespace {

constexpr int kTile = 128;  // positions whose maxima and sums are kept at a time

// ref::softmax's sums in its order, for `width` <= kTile neighbouring positions; the innermost loops run over these.
template <class T>
void softmaxTile(int axis, int64_t inner, int width, const T* x, T* y) {
  T most[kTile];
  double sums[kTile] = {};
  std::fill_n(most, width, -std::numeric_limits<T>::infinity());
  for (int c = 0; c < axis; ++c)
    for (int p = 0; p < width; ++p) most[p] = std::max(most[p], x[c * inner + p]);
  for (int c = 0; c < axis; ++c)
    for (int p = 0; p < width; ++p) {
      const double e = std::exp(static_cast<double>(x[c * inner + p]) - most[p]);
      y[c * inner + p] = static_cast<T>(e);
      sums[p] += e;
    }
  for (int c = 0; c < axis; ++c)
    for (int p = 0; p < width; ++p) y[c * inner + p] = static_cast<T>(y[c * inner + p] / sums[p]);
}

}  // namespace

template <class T>
void softmax(Context& c, int outer, int axis, int inner, const T* x, T* y) {
  const int tiles = (inner + kTile - 1) / kTile;
  const int64_t all = int64_t{outer} * tiles, cost = int64_t{axis} * std::clamp(inner, 1, kTile);
  const int64_t step = std::max<int64_t>(1, 2048 / std::max<int64_t>(1, cost));
  c.pool().run(static_cast<int>((all + step - 1) / step), [&](int task, int) {
    for (int64_t t = task * step; t < std::min(all, (task + 1) * step); ++t) {
      const int64_t from = t % tiles * kTile, first = t / tiles * axis * inner + from;
      softmaxTile(axis, inner, static_cast<int>(std::min<int64_t>(kTile, inner - from)), x + first, y + first);
    }
  });
}

namespace {

// Chunks of 4096 values, each on 8 chains in double; the chunks' sums are added in a binary tree. The order depends on
// count alone.
template <class Term>
double reduce(Context& c, int64_t count, Term term) {
  constexpr int64_t kChunk = 4096;
  const auto chunks = static_cast<int>((count + kChunk - 1) / kChunk);
  std::vector<double> sums(static_cast<size_t>(std::max(1, chunks)), 0.0);
  c.pool().run(chunks < 16 ? 1 : chunks / 8 + 1, [&](int task, int) {
    const int tasks = chunks < 16 ? 1 : chunks / 8 + 1;
    for (int k = static_cast<int>(int64_t{task} * chunks / tasks);
         k < static_cast<int>((int64_t{task} + 1) * chunks / tasks); ++k) {
      const int64_t from = k * kChunk, to = std::min(count, from + kChunk);
      double chain[8] = {};
      int64_t i = from;
      for (; i + 8 <= to; i += 8)
        for (int l = 0; l < 8; ++l) chain[l] += term(i + l);
      for (int l = 0; i < to; ++i, ++l) chain[l] += term(i);
      for (int half = 4; half; half /= 2)
        for (int l = 0; l < half; ++l) chain[l] += chain[l + half];
      sums[static_cast<size_t>(k)] = chain[0];
    }
  });
  for (size_t d = 1; d < sums.size(); d *= 2)
    for (size_t i = 0; i + d < sums.size(); i += 2 * d) sums[i] += sums[i + d];
  return sums[0];
}

}  // namespace

template <class T>
double sumOfSquares(Context& c, int64_t n, const T* x) {
  return reduce(c, n, [x](int64_t i) { return static_cast<double>(x[i]) * x[i]; });
}
template <class T>
double dot(Context& c, int64_t n, const T* a, const T* b) {
  return reduce(c, n, [a, b](int64_t i) { return static_cast<double>(a[i]) * b[i]; });
}

#define INSTANCE(T)                                                \
  template void softmax<T>(Context&, int, int, int, const T*, T*); \
  template double sumOfSquares<T>(Context&, int64_t, const T*);    \
  template double dot<T>(Context&, int64_t, const T*, const T*);
INSTANCE(float)
INSTANCE(double)
#undef INSTANCE

}  // namespace crema::kernels
