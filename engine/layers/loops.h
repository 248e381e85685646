// Loops that layers share: over elements, over rows that belong to channels, and sums for each channel. Pieces depend
// on the shape alone and every sum has one order, so the bits are the same for any number of threads.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/channels.h"
#include "tensor/blob.h"

namespace crema::layers {

constexpr int64_t kPiece = 8192;  // elements per task

// body(from, to) for pieces of [0, count). Blobs must have been accessed before: their memory is allocated on first
// use, which is not thread-safe.
template <class Body>
void inPieces(ThreadPool& pool, int64_t count, const Body& body) {
  pool.run(static_cast<int>((count + kPiece - 1) / kPiece),
           [&](int task, int) { body(task * kPiece, std::min(count, (task + 1) * kPiece)); });
}

// The memory of each, made if it was not there.
template <class T>
std::vector<const T*> dataOf(const std::vector<Blob*>& blobs) {
  std::vector<const T*> all;
  for (const Blob* b : blobs) all.push_back(b->data<T>());
  return all;
}
template <class T>
std::vector<const T*> diffsOf(const std::vector<Blob*>& blobs) {
  std::vector<const T*> all;
  for (const Blob* b : blobs) all.push_back(b->diff<T>());
  return all;
}

// A blob seen as outer x channels x inner.
struct Channels {
  int outer = 1, channels = 1, inner = 1;
  // The channels are axes [from, to).
  static Channels of(const Shape& s, int from, int to) { return {s.count(0, from), s.count(from, to), s.count(to)}; }
  int64_t rows() const { return int64_t{outer} * channels; }
  int64_t perChannel() const { return int64_t{outer} * inner; }
  kernels::ChannelShape shape() const { return {outer, channels, inner}; }
};

// body(channel, from, to) for each row [from, to) of `inner` elements.
template <class Body>
void eachRow(ThreadPool& pool, const Channels& c, const Body& body) {
  if (c.channels == 0) return;
  const int64_t rows = c.rows(), step = std::max<int64_t>(1, kPiece / std::max(1, c.inner));
  pool.run(static_cast<int>((rows + step - 1) / step), [&](int task, int) {
    const int64_t end = std::min(rows, (task + 1) * step);
    int channel = static_cast<int>(task * step % c.channels);
    for (int64_t r = task * step; r < end; ++r, channel = channel + 1 == c.channels ? 0 : channel + 1)
      body(channel, r * c.inner, (r + 1) * c.inner);
  });
}

// body(o, from, to) for tiles of up to 256 consecutive elements [from, to) of `inner`, in each of `outer`: for work
// over all channels whose innermost loop runs over the tile.
template <class Body>
void eachTile(ThreadPool& pool, const Channels& c, const Body& body) {
  constexpr int kTile = 256;
  const int64_t tiles = (c.inner + kTile - 1) / kTile, all = c.outer * tiles;
  const int64_t cost = int64_t{std::max(1, c.channels)} * std::clamp(c.inner, 1, kTile);
  const int64_t step = std::max<int64_t>(1, kPiece / cost);
  pool.run(static_cast<int>((all + step - 1) / step), [&](int task, int) {
    for (int64_t t = task * step; t < std::min(all, (task + 1) * step); ++t)
      body(t / tiles, t % tiles * kTile, std::min<int64_t>(c.inner, (t % tiles + 1) * kTile));
  });
}

// sum of term(i), i in [from, to), in double on 8 chains that are added in a tree.
template <class Term>
double sumOf(int64_t from, int64_t to, const Term& term) {
  if (to - from == 1) return static_cast<double>(term(from));
  double chain[8] = {};
  int64_t i = from;
  for (; i + 8 <= to; i += 8)
    for (int l = 0; l < 8; ++l) chain[l] += static_cast<double>(term(i + l));
  for (int l = 0; i < to; ++i, ++l) chain[l] += static_cast<double>(term(i));
  for (int half = 4; half; half /= 2)
    for (int l = 0; l < half; ++l) chain[l] += chain[l + half];
  return chain[0];
}

// sums[d] = sum over outer and inner of term(element, d), row by row.
template <class Term>
void channelSums(ThreadPool& pool, const Channels& c, double* sums, const Term& term) {
  constexpr int kBlock = 16;
  pool.run((c.channels + kBlock - 1) / kBlock, [&](int task, int) {
    const int first = task * kBlock, last = std::min(c.channels, first + kBlock);
    std::fill(sums + first, sums + last, 0.0);
    for (int o = 0; o < c.outer; ++o)
      for (int d = first; d < last; ++d) {
        const int64_t from = (int64_t{o} * c.channels + d) * c.inner;
        sums[d] += sumOf(from, from + c.inner, [&](int64_t i) { return term(i, d); });
      }
  });
}

}  // namespace crema::layers
