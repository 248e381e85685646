#include "layers/pool_windows.h"

#include <algorithm>

#include "base/error.h"

namespace crema::layers {
namespace {

// Calls use(index in the plane) for every value of a window.
template <class Use>
void eachValue(const PoolWindows& s, const PoolSpan& row, const PoolSpan& column, Use use) {
  const int top = std::max(row.from, 0), bottom = std::min(row.to, s.h);
  const int left = std::max(column.from, 0), right = std::min(column.to, s.w);
  for (int i = top; i < bottom; ++i)
    for (int j = left; j < right; ++j) use(static_cast<int32_t>(i * s.w + j));
}

// Calls use(plane, window of the plane, its row, its column), planes in parallel.
template <class Use>
void eachWindow(kernels::Context& context, const PoolWindows& s, Use use) {
  context.pool().run(s.images * s.channels, [&](int plane, int) {
    int64_t at = 0;
    for (const PoolSpan& row : s.rows)
      for (const PoolSpan& column : s.columns) use(plane, at++, row, column);
  });
}

struct Moments {
  double sum = 0, squares = 0;
};

template <class T>
Moments moments(const PoolWindows& s, const PoolSpan& row, const PoolSpan& column, const T* x) {
  Moments m;
  eachValue(s, row, column, [&](int32_t i) {
    if (!(x[i] >= 0))
      badData(
          "the bottom holds {}: pool STOCHASTIC draws in proportion to the values, which must be 0 or more; put a "
          "ReLU below it",
          x[i]);
    m.sum += x[i], m.squares += static_cast<double>(x[i]) * x[i];
  });
  return m;
}

template <class T>
int32_t draw(const PoolWindows& s, const PoolSpan& row, const PoolSpan& column, const T* x, double u) {
  const double threshold = u * moments(s, row, column, x).sum;
  double sum = 0;
  int32_t drawn = -1, first = -1;
  eachValue(s, row, column, [&](int32_t i) {
    if (first < 0) first = i;
    sum += x[i];
    if (drawn < 0 && sum > threshold) drawn = i;
  });
  return drawn < 0 ? first : drawn;
}

template <class T>
int32_t largest(const PoolWindows& s, const PoolSpan& row, const PoolSpan& column, const T* x) {
  int32_t best = -1;
  eachValue(s, row, column, [&](int32_t i) { best = best < 0 || x[i] > x[best] ? i : best; });
  return best;
}

double size(const PoolSpan& row, const PoolSpan& column) {
  return static_cast<double>(row.to - row.from) * (column.to - column.from);
}

bool hasWinner(PoolRule rule) { return rule == PoolRule::kMax || rule == PoolRule::kDraw; }

}  // namespace

template <class T>
void poolWindows(kernels::Context& context, PoolRule rule, const PoolWindows& s, const T* x, T* y, int64_t imageStride,
                 int32_t* winners, const RandomStream& draws, uint64_t firstDraw) {
  const int64_t plane = int64_t{s.h} * s.w, area = s.area();
  eachWindow(context, s, [&](int p, int64_t at, const PoolSpan& row, const PoolSpan& column) {
    const T* in = x + p * plane;
    const int64_t output = p * area + at;
    T& out = y[p / s.channels * imageStride + p % s.channels * area + at];
    if (hasWinner(rule)) {
      const int32_t winner = rule == PoolRule::kMax
                                 ? largest(s, row, column, in)
                                 : draw(s, row, column, in, draws.uniform(firstDraw + static_cast<uint64_t>(output)));
      winners[output] = winner, out = in[winner];
    } else if (rule == PoolRule::kAve) {
      double sum = 0;
      eachValue(s, row, column, [&](int32_t i) { sum += in[i]; });
      out = static_cast<T>(sum / size(row, column));
    } else {
      const Moments m = moments(s, row, column, in);
      out = m.sum > 0 ? static_cast<T>(m.squares / m.sum) : T(0);
    }
  });
}

template <class T>
void addPoolGradient(kernels::Context& context, PoolRule rule, const PoolWindows& s, const T* x, const T* dy,
                     int64_t imageStride, const int32_t* winners, T* dx) {
  const int64_t plane = int64_t{s.h} * s.w, area = s.area();
  eachWindow(context, s, [&](int p, int64_t at, const PoolSpan& row, const PoolSpan& column) {
    const T* in = x + p * plane;
    T* to = dx + p * plane;
    const T d = dy[p / s.channels * imageStride + p % s.channels * area + at];
    if (hasWinner(rule)) {
      to[winners[p * area + at]] += d;
    } else if (rule == PoolRule::kAve) {
      const T part = static_cast<T>(d / size(row, column));
      eachValue(s, row, column, [&](int32_t i) { to[i] += part; });
    } else if (const Moments m = moments(s, row, column, in); m.sum > 0) {
      eachValue(s, row, column,
                [&](int32_t i) { to[i] += static_cast<T>(d * (2 * in[i] * m.sum - m.squares) / (m.sum * m.sum)); });
    }
  });
}

#define INSTANCE(T)                                                                                              \
  template void poolWindows<T>(kernels::Context&, PoolRule, const PoolWindows&, const T*, T*, int64_t, int32_t*, \
                               const RandomStream&, uint64_t);                                                   \
  template void addPoolGradient<T>(kernels::Context&, PoolRule, const PoolWindows&, const T*, const T*, int64_t, \
                                   const int32_t*, T*);
INSTANCE(float)
INSTANCE(double)
#undef INSTANCE

}  // namespace crema::layers
