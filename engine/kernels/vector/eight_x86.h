// Eight floats at a time on x86, in AVX2's instructions, which AVX-512 has as well: a part of the vocabulary that both
// share. They move numbers and compute nothing.
namespace crema::kernels::KNS {

INL void drain() { _mm_sfence(); }
INL void copy8(const float* s, float* d) { _mm256_storeu_ps(d, _mm256_loadu_ps(s)); }
INL void zero8(float* d) { _mm256_storeu_ps(d, _mm256_setzero_ps()); }

// d [16] = a[0] b[0] a[1] b[1] ...
INL void zip8(const float* a, const float* b, float* d) {
  const __m256 x = _mm256_loadu_ps(a), y = _mm256_loadu_ps(b);
  const __m256 low = _mm256_unpacklo_ps(x, y), high = _mm256_unpackhi_ps(x, y);
  _mm256_storeu_ps(d, _mm256_permute2f128_ps(low, high, 0x20));
  _mm256_storeu_ps(d + 8, _mm256_permute2f128_ps(low, high, 0x31));
}

// d [8] from two vectors' pairs
INL void storeInOrder(float* d, __m256 pairs) {
  _mm256_storeu_ps(d, _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(pairs), 0xd8)));
}

// d [8] = s[0] s[2] ... s[14]
INL void even8(const float* s, float* d) {
  storeInOrder(d, _mm256_shuffle_ps(_mm256_loadu_ps(s), _mm256_loadu_ps(s + 8), 0x88));
}

// Copies the first n of eight.
struct First8 {
  INL explicit First8(int n)
      : mask(_mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7))) {}
  INL void copy(const float* s, float* d) const { _mm256_maskstore_ps(d, mask, _mm256_loadu_ps(s)); }
  __m256i mask;
};

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
