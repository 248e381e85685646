// XXH3 of 64 bits, with a seed: by AVX2 where the processor has it, which gives the same sum in half the time.
#pragma once
#include <cstddef>
#include <cstdint>

namespace crema {

uint64_t packetSum(const void* bytes, size_t size, uint64_t seed);

namespace detail {
uint64_t packetSumByAvx2(const void* bytes, size_t size, uint64_t seed);
uint64_t packetSumAnywhere(const void* bytes, size_t size, uint64_t seed);
}  // namespace detail

}  // namespace crema
