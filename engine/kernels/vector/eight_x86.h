// Eight floats at a time on x86, in AVX2's instructions, which AVX-512 has as well: a part of the vocabulary that both
// share. They move numbers and compute nothing.
namespace crema::kernels::KNS {

INL void drain() { _mm_sfence(); }
INL void copy8(const float* s, float* d) { _mm256_storeu_ps(d, _mm256_loadu_ps(s)); }
INL void zero8(float* d) { _mm256_storeu_ps(d, _mm256_setzero_ps()); }

// The transpose of 8 x 8, in registers.
INL void transposeEight(__m256* r) {
  __m256 t[8];
  for (int i = 0; i < 4; ++i)
    t[2 * i] = _mm256_unpacklo_ps(r[2 * i], r[2 * i + 1]), t[2 * i + 1] = _mm256_unpackhi_ps(r[2 * i], r[2 * i + 1]);
  __m256 u[8];
  for (int i = 0; i < 8; i += 4) {
    u[i] = _mm256_shuffle_ps(t[i], t[i + 2], 0x44), u[i + 1] = _mm256_shuffle_ps(t[i], t[i + 2], 0xee);
    u[i + 2] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0x44), u[i + 3] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0xee);
  }
  for (int i = 0; i < 4; ++i) {
    r[i] = _mm256_permute2f128_ps(u[i], u[4 + i], 0x20);
    r[4 + i] = _mm256_permute2f128_ps(u[i], u[4 + i], 0x31);
  }
}

// d = the transpose of s, both 8 x 8, rows ls and ld apart
INL void transpose8(const float* s, ptrdiff_t ls, float* d, ptrdiff_t ld) {
  __m256 r[8];
  for (int i = 0; i < 8; ++i) r[i] = _mm256_loadu_ps(s + i * ls);
  transposeEight(r);
  for (int i = 0; i < 8; ++i) _mm256_storeu_ps(d + i * ld, r[i]);
}

}  // namespace crema::kernels::KNS
