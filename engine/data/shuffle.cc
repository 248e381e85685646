#include "data/shuffle.h"

namespace crema {

int64_t permuted(const RandomStream& stream, int64_t n, int64_t place) {
  if (n < 2) return 0;
  int bits = 1;  // of each half
  while ((int64_t{1} << (2 * bits)) < n) ++bits;
  const uint64_t mask = (uint64_t{1} << bits) - 1;
  auto x = static_cast<uint64_t>(place);
  do {
    for (uint64_t round = 0; round < 4; ++round) {
      const uint64_t left = x >> bits, right = x & mask;
      const auto block = stream.block(round << 32 | right);
      x = right << bits | (left ^ (block[0] & mask));
    }
  } while (x >= static_cast<uint64_t>(n));
  return static_cast<int64_t>(x);
}

}  // namespace crema
