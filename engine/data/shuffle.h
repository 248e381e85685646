// A permutation of 0 .. n - 1 that is computed place by place, so that any step of any epoch can be found at once and
// resuming needs no state: a Feistel network of four rounds over the next power of four, walked until it lands inside
// (at most four steps on average). Rounds are numbers of a RandomStream.
#pragma once
#include <cstdint>

#include "base/random.h"

namespace crema {

// 0 <= place < n; the same stream gives the same permutation.
int64_t permuted(const RandomStream& stream, int64_t n, int64_t place);

}  // namespace crema
