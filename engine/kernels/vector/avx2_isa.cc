// AVX2 with FMA: its words for the vocabulary of vector/all.h, and the table of kernels written in them.
#include <immintrin.h>

#include "kernels/vector/outside.h"

#define KNS avx2
#pragma GCC push_options
#pragma GCC target("avx2,fma")

namespace crema::kernels::avx2 {

constexpr int VL = 8, kRows = 6;  // 6 x 2 accumulators, 2 of B, 1 broadcast: 15 of 16 registers
using V = __m256;
using Mask = __m256i;
INL V zero() { return _mm256_setzero_ps(); }
INL V set1(float x) { return _mm256_set1_ps(x); }
INL V set1Bits(int bits) { return _mm256_castsi256_ps(_mm256_set1_epi32(bits)); }
INL V load(const float* p) { return _mm256_loadu_ps(p); }
INL void store(float* p, V v) { _mm256_storeu_ps(p, v); }
INL void stream(float* p, V v) { _mm256_stream_ps(p, v); }
INL V fma(V a, V b, V c) { return _mm256_fmadd_ps(a, b, c); }
INL V add(V a, V b) { return _mm256_add_ps(a, b); }
INL V sub(V a, V b) { return _mm256_sub_ps(a, b); }
INL V mul(V a, V b) { return _mm256_mul_ps(a, b); }
INL V div(V a, V b) { return _mm256_div_ps(a, b); }
INL V sqrt(V a) { return _mm256_sqrt_ps(a); }
INL V larger(V a, V b) { return _mm256_max_ps(a, b); }
INL Mask greater(V a, V b) { return _mm256_castps_si256(_mm256_cmp_ps(a, b, _CMP_GT_OQ)); }
INL V select(Mask m, V a, V b) { return _mm256_blendv_ps(b, a, _mm256_castsi256_ps(m)); }
INL V addBits(V a, V b) {
  return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(a), _mm256_castps_si256(b)));
}
INL bool all(Mask m) { return _mm256_movemask_ps(_mm256_castsi256_ps(m)) == 0xff; }
INL V quarterBits(V a) { return _mm256_castsi256_ps(_mm256_srli_epi32(_mm256_castps_si256(a), 2)); }
INL V subBits(V a, V b) {
  return _mm256_castsi256_ps(_mm256_sub_epi32(_mm256_castps_si256(a), _mm256_castps_si256(b)));
}
INL Mask lanes(int from, int to) {
  const __m256i i = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  return _mm256_and_si256(_mm256_cmpgt_epi32(i, _mm256_set1_epi32(from - 1)),
                          _mm256_cmpgt_epi32(_mm256_set1_epi32(to), i));
}
INL V load(Mask m, const float* p) { return _mm256_maskload_ps(p, m); }
INL V load(V other, Mask m, const float* p) {
  return _mm256_blendv_ps(other, _mm256_maskload_ps(p, m), _mm256_castsi256_ps(m));
}
// Zen's processors take a masked store apart, 12 cycles of it, whatever the mask says; most say all, or one half.
INL void store(Mask m, float* p, V v) {
  const int which = _mm256_movemask_ps(_mm256_castsi256_ps(m));
  if (which == 0xff) return store(p, v);
  if (which == 0x0f) return _mm_storeu_ps(p, _mm256_castps256_ps128(v));
  _mm256_maskstore_ps(p, m, v);
}
INL V loadHalves(const float* a, const float* b) {
  return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(a)), _mm_loadu_ps(b), 1);
}
template <int PAIRS>
INL V everyOther(V a, V b) {
  const __m256d pairs = _mm256_castps_pd(_mm256_shuffle_ps(a, b, PAIRS));
  return _mm256_castpd_ps(_mm256_permute4x64_pd(pairs, 0xd8));
}
INL V zipLow(V a, V b) { return _mm256_permute2f128_ps(_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b), 0x20); }
INL V zipHigh(V a, V b) { return _mm256_permute2f128_ps(_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b), 0x31); }
INL __m256i middleOf(V a, V b) { return _mm256_castps_si256(_mm256_permute2f128_ps(a, b, 0x21)); }
INL V after(V a, V b) { return _mm256_castsi256_ps(_mm256_alignr_epi8(middleOf(a, b), _mm256_castps_si256(a), 4)); }
INL V before(V a, V b) { return _mm256_castsi256_ps(_mm256_alignr_epi8(_mm256_castps_si256(b), middleOf(a, b), 12)); }
INL V evens(V a, V b) { return everyOther<0x88>(a, b); }
INL V odds(V a, V b) { return everyOther<0xdd>(a, b); }

struct D8 {
  __m256d lo, hi;
};
INL D8 set8(double x) { return {_mm256_set1_pd(x), _mm256_set1_pd(x)}; }
INL D8 load8(const float* p) { return {_mm256_cvtps_pd(_mm_loadu_ps(p)), _mm256_cvtps_pd(_mm_loadu_ps(p + 4))}; }
INL void store8(float* p, D8 a) {
  _mm_storeu_ps(p, _mm256_cvtpd_ps(a.lo));
  _mm_storeu_ps(p + 4, _mm256_cvtpd_ps(a.hi));
}
INL D8 load8(const double* p) { return {_mm256_loadu_pd(p), _mm256_loadu_pd(p + 4)}; }
INL void store8(double* p, D8 a) {
  _mm256_storeu_pd(p, a.lo);
  _mm256_storeu_pd(p + 4, a.hi);
}
INL D8 fma8(D8 a, D8 b, D8 c) { return {_mm256_fmadd_pd(a.lo, b.lo, c.lo), _mm256_fmadd_pd(a.hi, b.hi, c.hi)}; }
INL void widen(V v, D8* to) {
  *to = {_mm256_cvtps_pd(_mm256_castps256_ps128(v)), _mm256_cvtps_pd(_mm256_extractf128_ps(v, 1))};
}
INL D8 operator+(D8 a, D8 b) { return {_mm256_add_pd(a.lo, b.lo), _mm256_add_pd(a.hi, b.hi)}; }
INL D8 operator-(D8 a, D8 b) { return {_mm256_sub_pd(a.lo, b.lo), _mm256_sub_pd(a.hi, b.hi)}; }
INL D8 operator*(D8 a, D8 b) { return {_mm256_mul_pd(a.lo, b.lo), _mm256_mul_pd(a.hi, b.hi)}; }

}  // namespace crema::kernels::avx2

// clang-format off
#include "kernels/vector/eight_x86.h"
namespace crema::kernels::avx2 {
INL void transpose(V* r) { transposeEight(r); }
}  // namespace crema::kernels::avx2
#include "kernels/vector/all.h"
// clang-format on
#pragma GCC pop_options

namespace crema::kernels {

const Isa kAvx2 = {
    .name = "avx2",
    .runsHere = [] { return bool(__builtin_cpu_supports("avx2")) && bool(__builtin_cpu_supports("fma")); },
    .table = avx2::kTable,
};

}  // namespace crema::kernels
