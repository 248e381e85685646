// xxhash's functions are static here, so that no other file gets those that need AVX2.
#include <immintrin.h>

#include <climits>
#include <cstdlib>
#include <cstring>

#include "base/packet_sum.h"

#pragma GCC push_options
#pragma GCC target("avx2")
#define XXH_INLINE_ALL
#define XXH_VECTOR XXH_AVX2
#include <xxhash.h>

uint64_t crema::detail::packetSumByAvx2(const void* bytes, size_t size, uint64_t seed) {
  const uint64_t sum = XXH3_64bits_withSeed(bytes, size, seed);
  _mm256_zeroupper();  // xxhash's own `optimize` keeps GCC from it, and what adds up the packet then took twice its time
  return sum;
}
#pragma GCC pop_options
