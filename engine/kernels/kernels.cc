// The public functions: float goes to the table of the chosen instruction set, double to the reference loops.
#include "kernels/kernels.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

#include "kernels/ref/ref.h"
#include "kernels/table.h"

namespace crema::kernels {
template <class T>
void convForward(Context& c, const ConvShape& s, const T* x, const T* w, const T* bias, T* y) {
  dispatch<T>(c, &Table::convForward, ref::convForward<T>, s, x, w, bias, y);
}

// A strided and dilated convolution at once has no fast way back to its input: nobody was seen to use one.
template <class T>
void convBackwardData(Context& c, const ConvShape& s, const T* dy, const T* w, T* dx) {
  const bool declined = (s.strideH > 1 && s.dilH > 1) || (s.strideW > 1 && s.dilW > 1);
  if (declined) return ref::convBackwardData(s, dy, w, dx);
  dispatch<T>(c, &Table::convBackwardData, ref::convBackwardData<T>, s, dy, w, dx);
}

template <class T>
void convBackwardWeights(Context& c, const ConvShape& s, const T* x, const T* dy, T* dw, bool accumulate) {
  dispatch<T>(c, &Table::convBackwardWeights, ref::convBackwardWeights<T>, s, x, dy, dw, accumulate);
}

template <class T>
void convBackwardBias(Context& c, const ConvShape& s, const T* dy, T* dbias, bool accumulate) {
  dispatch<T>(c, &Table::convBackwardBias, ref::convBackwardBias<T>, s, dy, dbias, accumulate);
}

template <class T>
void ipForward(Context& c, const IpShape& s, const T* x, const T* w, const T* bias, T* y) {
  dispatch<T>(c, &Table::ipForward, ref::ipForward<T>, s, x, w, bias, y);
}

template <class T>
void ipBackwardData(Context& c, const IpShape& s, const T* dy, const T* w, T* dx) {
  dispatch<T>(c, &Table::ipBackwardData, ref::ipBackwardData<T>, s, dy, w, dx);
}

template <class T>
void ipBackwardWeights(Context& c, const IpShape& s, const T* x, const T* dy, T* dw, bool accumulate) {
  dispatch<T>(c, &Table::ipBackwardWeights, ref::ipBackwardWeights<T>, s, x, dy, dw, accumulate);
}

template <class T>
void ipBackwardBias(Context&, const IpShape& s, const T* dy, T* dbias, bool accumulate) {
  ref::ipBackwardBias(s, dy, dbias, accumulate);
}

template <class T>
void maxPoolForward(Context& c, const PoolShape& s, const T* x, T* y, int32_t* mask) {
  dispatch<T>(c, &Table::maxPoolForward, ref::maxPoolForward<T>, s, x, y, mask);
}

template <class T>
void maxPoolBackward(Context& c, const PoolShape& s, const T* dy, const int32_t* mask, T* dx) {
  dispatch<T>(c, &Table::maxPoolBackward, ref::maxPoolBackward<T>, s, dy, mask, dx);
}

template <class T>
void avePoolForward(Context& c, const PoolShape& s, const T* x, T* y) {
  dispatch<T>(c, &Table::avePoolForward, ref::avePoolForward<T>, s, x, y);
}

template <class T>
void avePoolBackward(Context& c, const PoolShape& s, const T* dy, T* dx) {
  dispatch<T>(c, &Table::avePoolBackward, ref::avePoolBackward<T>, s, dy, dx);
}

// The vector code takes the usual power 0.75 and windows of 3 and 5; others go through pow() and are slower.
static bool lrnIsFast(const LrnShape& s) { return s.beta == 0.75 && (s.size == 3 || s.size == 5); }

template <class T>
void lrnForward(Context& c, const LrnShape& s, const T* x, T* scale, T* y) {
  if (!lrnIsFast(s)) return ref::lrnForward(s, x, scale, y);
  dispatch<T>(c, &Table::lrnForward, ref::lrnForward<T>, s, x, scale, y);
}

template <class T>
void lrnBackward(Context& c, const LrnShape& s, const T* x, const T* y, const T* scale, const T* dy, T* dx) {
  if (!lrnIsFast(s)) return ref::lrnBackward(s, x, y, scale, dy, dx);
  dispatch<T>(c, &Table::lrnBackward, ref::lrnBackward<T>, s, x, y, scale, dy, dx);
}

template <class T>
void reluForward(Context& c, int64_t n, T slope, const T* x, T* y) {
  if constexpr (kFloat<T>)
    tableOf(c).reluForward(c, n, slope, x, y);
  else
    for (int64_t i = 0; i < n; ++i) y[i] = x[i] > 0 ? x[i] : slope * x[i];
}

template <class T>
void reluBackward(Context& c, int64_t n, T slope, const T* x, const T* dy, T* dx) {
  if constexpr (kFloat<T>)
    tableOf(c).reluBackward(c, n, slope, x, dy, dx);
  else
    for (int64_t i = 0; i < n; ++i) dx[i] = x[i] > 0 ? dy[i] : slope * dy[i];
}

template <class T>
void multiply(Context& c, int64_t n, const T* a, const T* b, T* y) {
  if constexpr (kFloat<T>)
    tableOf(c).multiply(c, n, a, b, y);
  else
    for (int64_t i = 0; i < n; ++i) y[i] = a[i] * b[i];
}

template <class T>
void add(Context& c, int64_t n, const T* a, const T* b, T* y) {
  if constexpr (kFloat<T>)
    tableOf(c).add(c, n, a, b, y);
  else
    for (int64_t i = 0; i < n; ++i) y[i] = a[i] + b[i];
}

template <class T>
void update(Context& c, int64_t n, const Update& u, const T* diff, T* history, T* history2, T* w) {
  dispatch<T>(c, &Table::update, ref::update<T>, n, u, diff, history, history2, w);
}

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

// Chunks of 4096 values, each on 8 chains in double; the chunks' sums are added in a binary tree. The order is a matter
// of count alone.
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

#define INSTANCE(T)                                                                                    \
  template void convForward<T>(Context&, const ConvShape&, const T*, const T*, const T*, T*);          \
  template void convBackwardData<T>(Context&, const ConvShape&, const T*, const T*, T*);               \
  template void convBackwardWeights<T>(Context&, const ConvShape&, const T*, const T*, T*, bool);      \
  template void convBackwardBias<T>(Context&, const ConvShape&, const T*, T*, bool);                   \
  template void ipForward<T>(Context&, const IpShape&, const T*, const T*, const T*, T*);              \
  template void ipBackwardData<T>(Context&, const IpShape&, const T*, const T*, T*);                   \
  template void ipBackwardWeights<T>(Context&, const IpShape&, const T*, const T*, T*, bool);          \
  template void ipBackwardBias<T>(Context&, const IpShape&, const T*, T*, bool);                       \
  template void maxPoolForward<T>(Context&, const PoolShape&, const T*, T*, int32_t*);                 \
  template void maxPoolBackward<T>(Context&, const PoolShape&, const T*, const int32_t*, T*);          \
  template void avePoolForward<T>(Context&, const PoolShape&, const T*, T*);                           \
  template void avePoolBackward<T>(Context&, const PoolShape&, const T*, T*);                          \
  template void lrnForward<T>(Context&, const LrnShape&, const T*, T*, T*);                            \
  template void lrnBackward<T>(Context&, const LrnShape&, const T*, const T*, const T*, const T*, T*); \
  template void reluForward<T>(Context&, int64_t, T, const T*, T*);                                    \
  template void reluBackward<T>(Context&, int64_t, T, const T*, const T*, T*);                         \
  template void multiply<T>(Context&, int64_t, const T*, const T*, T*);                                \
  template void add<T>(Context&, int64_t, const T*, const T*, T*);                                     \
  template void update<T>(Context&, int64_t, const Update&, const T*, T*, T*, T*);                     \
  template void softmax<T>(Context&, int, int, int, const T*, T*);                                     \
  template double sumOfSquares<T>(Context&, int64_t, const T*);                                        \
  template double dot<T>(Context&, int64_t, const T*, const T*);
INSTANCE(float)
INSTANCE(double)
#undef INSTANCE

}  // namespace crema::kernels
