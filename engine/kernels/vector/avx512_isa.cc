// AVX-512 (F, BW, DQ, VL: servers since Skylake): its words for the vocabulary of vector/all.h, and the table of
// kernels written in them.
#include <immintrin.h>

#include "kernels/vector/outside.h"

#define KNS avx512
#pragma GCC push_options
#pragma GCC target("avx512f,avx512vl,avx512dq,avx512bw,avx2,fma,prefer-vector-width=512")

namespace crema::kernels::avx512 {

constexpr int VL = 16, kRows = 14;  // 14 x 2 accumulators, 2 of B, 1 broadcast: 31 of 32 registers
using V = __m512;
using Mask = __mmask16;
INL V zero() { return _mm512_setzero_ps(); }
INL V set1(float x) { return _mm512_set1_ps(x); }
INL V set1Bits(int bits) { return _mm512_castsi512_ps(_mm512_set1_epi32(bits)); }
INL V load(const float* p) { return _mm512_loadu_ps(p); }
INL void store(float* p, V v) { _mm512_storeu_ps(p, v); }
INL void stream(float* p, V v) { _mm512_stream_ps(p, v); }
INL V fma(V a, V b, V c) { return _mm512_fmadd_ps(a, b, c); }
INL V add(V a, V b) { return _mm512_add_ps(a, b); }
INL V sub(V a, V b) { return _mm512_sub_ps(a, b); }
INL V mul(V a, V b) { return _mm512_mul_ps(a, b); }
INL V div(V a, V b) { return _mm512_div_ps(a, b); }
INL V sqrt(V a) { return _mm512_maskz_sqrt_ps(0xffff, a); }  // the plain form makes GCC 12 warn of its own header
INL V larger(V a, V b) { return _mm512_maskz_max_ps(0xffff, a, b); }
INL Mask greater(V a, V b) { return _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ); }
INL V select(Mask m, V a, V b) { return _mm512_mask_blend_ps(m, b, a); }  // m ? a : b
INL V addBits(V a, V b) {
  return _mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(a), _mm512_castps_si512(b)));
}
INL bool all(Mask m) { return m == 0xffff; }
INL V quarterBits(V a) { return _mm512_castsi512_ps(_mm512_maskz_srli_epi32(0xffff, _mm512_castps_si512(a), 2)); }
INL V subBits(V a, V b) {
  return _mm512_castsi512_ps(_mm512_sub_epi32(_mm512_castps_si512(a), _mm512_castps_si512(b)));
}
INL Mask lanes(int from, int to) { return Mask(((1u << to) - 1) & ~((1u << from) - 1)); }
INL V load(Mask m, const float* p) { return _mm512_maskz_loadu_ps(m, p); }
INL V load(V other, Mask m, const float* p) { return _mm512_mask_loadu_ps(other, m, p); }
INL void store(Mask m, float* p, V v) { _mm512_mask_storeu_ps(p, m, v); }
INL V loadHalves(const float* a, const float* b) {
  return _mm512_insertf32x8(_mm512_castps256_ps512(_mm256_loadu_ps(a)), _mm256_loadu_ps(b), 1);
}
INL V everyOther(V a, V b, int first) {
  const __m512i place = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
  return _mm512_permutex2var_ps(a, _mm512_add_epi32(place, _mm512_set1_epi32(first)), b);
}
INL V zipped(V a, V b, int first) {
  const __m512i place = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  return _mm512_permutex2var_ps(a, _mm512_add_epi32(place, _mm512_set1_epi32(first)), b);
}
INL V zipLow(V a, V b) { return zipped(a, b, 0); }
INL V zipHigh(V a, V b) { return zipped(a, b, 8); }
INL V lowPairs(V a, V b) {
  return _mm512_castpd_ps(_mm512_maskz_unpacklo_pd(0xff, _mm512_castps_pd(a), _mm512_castps_pd(b)));
}
INL V highPairs(V a, V b) {
  return _mm512_castpd_ps(_mm512_maskz_unpackhi_pd(0xff, _mm512_castps_pd(a), _mm512_castps_pd(b)));
}
template <int WHICH>
INL V quarters(V a, V b) {
  return _mm512_maskz_shuffle_f32x4(0xffff, a, b, WHICH);
}
INL void transpose(V* r) {
  __m512 t[16], u[16];
  for (int i = 0; i < 8; ++i)
    t[2 * i] = _mm512_maskz_unpacklo_ps(0xffff, r[2 * i], r[2 * i + 1]),
          t[2 * i + 1] = _mm512_maskz_unpackhi_ps(0xffff, r[2 * i], r[2 * i + 1]);
  for (int i = 0; i < 16; i += 4) {  // rows i to i + 3 of columns c, 4 + c, 8 + c and 12 + c in u[i + c]
    u[i] = lowPairs(t[i], t[i + 2]), u[i + 1] = highPairs(t[i], t[i + 2]);
    u[i + 2] = lowPairs(t[i + 1], t[i + 3]), u[i + 3] = highPairs(t[i + 1], t[i + 3]);
  }
  for (int c = 0; c < 4; ++c) {
    const V even = quarters<0x88>(u[c], u[4 + c]), odd = quarters<0xdd>(u[c], u[4 + c]);
    const V evenBelow = quarters<0x88>(u[8 + c], u[12 + c]), oddBelow = quarters<0xdd>(u[8 + c], u[12 + c]);
    r[c] = quarters<0x88>(even, evenBelow), r[8 + c] = quarters<0xdd>(even, evenBelow);
    r[4 + c] = quarters<0x88>(odd, oddBelow), r[12 + c] = quarters<0xdd>(odd, oddBelow);
  }
}
INL V after(V a, V b) {
  return _mm512_castsi512_ps(_mm512_maskz_alignr_epi32(0xffff, _mm512_castps_si512(b), _mm512_castps_si512(a), 1));
}
INL V before(V a, V b) {
  return _mm512_castsi512_ps(_mm512_maskz_alignr_epi32(0xffff, _mm512_castps_si512(b), _mm512_castps_si512(a), VL - 1));
}
INL V evens(V a, V b) { return everyOther(a, b, 0); }
INL V odds(V a, V b) { return everyOther(a, b, 1); }

struct D8 {
  __m512d v;
};
INL D8 set8(double x) { return {_mm512_set1_pd(x)}; }
INL D8 load8(const float* p) { return {_mm512_maskz_cvtps_pd(0xff, _mm256_loadu_ps(p))}; }
INL void store8(float* p, D8 a) { _mm256_storeu_ps(p, _mm512_maskz_cvtpd_ps(0xff, a.v)); }
INL D8 load8(const double* p) { return {_mm512_loadu_pd(p)}; }
INL void store8(double* p, D8 a) { _mm512_storeu_pd(p, a.v); }
INL D8 fma8(D8 a, D8 b, D8 c) { return {_mm512_fmadd_pd(a.v, b.v, c.v)}; }
INL void widen(V v, D8* to) {
  to[0].v = _mm512_maskz_cvtps_pd(0xff, _mm512_maskz_extractf32x8_ps(0xff, v, 0));  // a cast warns as above
  to[1].v = _mm512_maskz_cvtps_pd(0xff, _mm512_maskz_extractf32x8_ps(0xff, v, 1));
}
INL D8 operator+(D8 a, D8 b) { return {_mm512_add_pd(a.v, b.v)}; }
INL D8 operator-(D8 a, D8 b) { return {_mm512_sub_pd(a.v, b.v)}; }
INL D8 operator*(D8 a, D8 b) { return {_mm512_mul_pd(a.v, b.v)}; }

}  // namespace crema::kernels::avx512

// clang-format off
#include "kernels/vector/eight_x86.h"
#include "kernels/vector/all.h"
// clang-format on
#pragma GCC pop_options

namespace crema::kernels {

const Isa kAvx512 = {
    .name = "avx512",
    .runsHere =
        [] {
          return bool(__builtin_cpu_supports("avx2")) && bool(__builtin_cpu_supports("fma")) &&
                 bool(__builtin_cpu_supports("avx512f")) && bool(__builtin_cpu_supports("avx512vl")) &&
                 bool(__builtin_cpu_supports("avx512dq")) && bool(__builtin_cpu_supports("avx512bw"));
        },
    .table = avx512::kTable,
};

}  // namespace crema::kernels
