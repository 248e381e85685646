// A blob that consists of others, one after the other along an axis: Concat's top, Slice's bottom.
#pragma once
#include <cstddef>
#include <cstdint>

#include "layers/layer.h"

namespace crema::layers {

// Calls use(i, offset in the part, offset in the whole, count) for every run of `count` consecutive elements of part i.
template <class Use>
void eachPart(const Blobs& parts, const Shape& whole, int axis, Use use) {
  const int outer = whole.count(0, axis);
  const int64_t row = whole.count(axis);
  int64_t start = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    const int64_t part = parts[i]->shape().count(axis);
    for (int o = 0; o < outer; ++o) use(i, o * part, o * row + start, part);
    start += part;
  }
}

}  // namespace crema::layers
