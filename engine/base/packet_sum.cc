#include "base/packet_sum.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace crema {

uint64_t detail::packetSumAnywhere(const void* bytes, size_t size, uint64_t seed) {
  return XXH3_64bits_withSeed(bytes, size, seed);
}

uint64_t packetSum(const void* bytes, size_t size, uint64_t seed) {
  static const bool kAvx2 = __builtin_cpu_supports("avx2");
  return kAvx2 ? detail::packetSumByAvx2(bytes, size, seed) : detail::packetSumAnywhere(bytes, size, seed);
}

}  // namespace crema
