// A tiny vector vocabulary: one float vector V of VL lanes, fused multiply-add guaranteed. Everything in vector/ is
// written once over it and compiled once per instruction set, each time in a namespace of its own (KNS), inside a
// `#pragma GCC target` region of the
// *_isa.cc files. The pragma, and not -m flags, so that the standard library's inline functions stay baseline code: the
// linker keeps one copy of each, and it must run on every CPU.
#if CREMA_VECTOR_BITS == 512
#define KNS k512
#else
#define KNS k256
#endif
#define INL inline __attribute__((always_inline))

namespace crema::kernels::KNS {

#if CREMA_VECTOR_BITS == 512
constexpr int VL = 16, kRows = 14;  // 14 x 2 accumulators, 2 of B, 1 broadcast: 31 of 32 registers
using V = __m512;
using Mask = __mmask16;
INL V zero() { return _mm512_setzero_ps(); }
INL V set1(float x) { return _mm512_set1_ps(x); }
INL V set1Bits(int bits) { return _mm512_castsi512_ps(_mm512_set1_epi32(bits)); }
INL V load(const float* p) { return _mm512_loadu_ps(p); }
INL void store(float* p, V v) { _mm512_storeu_ps(p, v); }
INL V fma(V a, V b, V c) { return _mm512_fmadd_ps(a, b, c); }
INL V add(V a, V b) { return _mm512_add_ps(a, b); }
INL V sub(V a, V b) { return _mm512_sub_ps(a, b); }
INL V mul(V a, V b) { return _mm512_mul_ps(a, b); }
INL V div(V a, V b) { return _mm512_div_ps(a, b); }
INL V sqrt(V a) { return _mm512_maskz_sqrt_ps(0xffff, a); }  // the plain form makes GCC 12 warn of its own header
INL Mask equal(V a, V b) { return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ); }
INL Mask greater(V a, V b) { return _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ); }
INL V select(Mask m, V a, V b) { return _mm512_mask_blend_ps(m, b, a); }  // m ? a : b
INL Mask lanes(int from, int to) { return Mask(((1u << to) - 1) & ~((1u << from) - 1)); }
INL V load(Mask m, const float* p) { return _mm512_maskz_loadu_ps(m, p); }
INL V load(V other, Mask m, const float* p) { return _mm512_mask_loadu_ps(other, m, p); }
INL void store(Mask m, float* p, V v) { _mm512_mask_storeu_ps(p, m, v); }
INL V loadHalves(const float* a, const float* b) {
  return _mm512_insertf32x8(_mm512_castps256_ps512(_mm256_loadu_ps(a)), _mm256_loadu_ps(b), 1);
}
#else
constexpr int VL = 8, kRows = 6;  // 6 x 2 accumulators, 2 of B, 1 broadcast: 15 of 16 registers
using V = __m256;
using Mask = __m256i;
INL V zero() { return _mm256_setzero_ps(); }
INL V set1(float x) { return _mm256_set1_ps(x); }
INL V set1Bits(int bits) { return _mm256_castsi256_ps(_mm256_set1_epi32(bits)); }
INL V load(const float* p) { return _mm256_loadu_ps(p); }
INL void store(float* p, V v) { _mm256_storeu_ps(p, v); }
INL V fma(V a, V b, V c) { return _mm256_fmadd_ps(a, b, c); }
INL V add(V a, V b) { return _mm256_add_ps(a, b); }
INL V sub(V a, V b) { return _mm256_sub_ps(a, b); }
INL V mul(V a, V b) { return _mm256_mul_ps(a, b); }
INL V div(V a, V b) { return _mm256_div_ps(a, b); }
INL V sqrt(V a) { return _mm256_sqrt_ps(a); }
INL Mask equal(V a, V b) { return _mm256_castps_si256(_mm256_cmp_ps(a, b, _CMP_EQ_OQ)); }
INL Mask greater(V a, V b) { return _mm256_castps_si256(_mm256_cmp_ps(a, b, _CMP_GT_OQ)); }
INL V select(Mask m, V a, V b) { return _mm256_blendv_ps(b, a, _mm256_castsi256_ps(m)); }
INL Mask lanes(int from, int to) {
  const __m256i i = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  return _mm256_and_si256(_mm256_cmpgt_epi32(i, _mm256_set1_epi32(from - 1)),
                          _mm256_cmpgt_epi32(_mm256_set1_epi32(to), i));
}
INL V load(Mask m, const float* p) { return _mm256_maskload_ps(p, m); }
INL V load(V other, Mask m, const float* p) {
  return _mm256_blendv_ps(other, _mm256_maskload_ps(p, m), _mm256_castsi256_ps(m));
}
INL void store(Mask m, float* p, V v) { _mm256_maskstore_ps(p, m, v); }
INL V loadHalves(const float* a, const float* b) {
  return _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(a)), _mm_loadu_ps(b), 1);
}
#endif

constexpr int kWidth = 2;            // vectors per row of a tile
constexpr int kPanel = kWidth * VL;  // positions per panel: 32 or 16

}  // namespace crema::kernels::KNS
