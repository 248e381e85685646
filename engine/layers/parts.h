// A blob that consists of others, one after the other along an axis: Concat's top, Slice's bottom.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "layers/layer.h"
#include "layers/loops.h"

namespace crema::layers {

// Calls use(i, offset in the part, offset in the whole, count) for runs of `count` consecutive elements of part i, which threads
// share. Memory must be there before.
template <class Use>
void eachPart(ThreadPool& pool, const Blobs& parts, const Shape& whole, int axis, Use use) {
  constexpr int64_t kLong = 1 << 15;  // elements of a task
  const int outer = whole.count(0, axis);
  const int64_t row = whole.count(axis);
  int64_t start = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    const int64_t part = parts[i]->shape().count(axis);
    if (part == 0) continue;
    const int64_t rows = std::clamp<int64_t>(kLong / part, 1, std::max(1, outer)), cuts = (part + kLong - 1) / kLong;
    pool.run(static_cast<int>((outer + rows - 1) / rows * cuts), [&](int task, int) {
      const int64_t first = task / cuts * rows, from = task % cuts * kLong, to = std::min(part, from + kLong);
      for (int64_t o = first; o < std::min<int64_t>(outer, first + rows); ++o)
        use(i, o * part + from, o * row + start + from, to - from);
    });
    start += part;
  }
}

}  // namespace crema::layers
