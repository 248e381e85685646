// The three micro kernels. Every output element is one chain of fused multiply-adds in the order of k (or p): tile sizes
// affect when an element is computed, never its order of additions.
namespace crema::kernels::KNS {

// 1. gemmTile<MR, mode>: C[MR][kPanel] = start + sum_k A[k][MR] * B(k), one chain from zero or bias[MR]; `accumulate`
//    adds it to C at its end. Long sums are split into pieces; adding finished pieces rounds less than one long chain.
//    B: packed [k][kPanel], or read in place from planes through two row pointers (rows) or four half-row pointers
//    (halves) plus off[k]. `ask`: a line from there on is asked for with each k, as weights come from memory once.
//    `finish`, where it is not null: steps on the sums, and whether they are stored past the caches.
//    kTurned: rows are positions and columns outputs, where positions are few. A is [k][kPanel], of which MR are read; the
//    chains of column v begin with bias[v].
//    kAsking: as kPacked; with each k one of K `lines` is asked for, too.
enum TileMode { kPacked, kFromRows, kFromHalves, kTurned, kAsking };
using GemmTile = void (*)(int K, const float* A, const float* const* source, const int* off, float* C, ptrdiff_t ldc,
                          bool accumulate, const float* bias, const float* ask, const Finish* finish,
                          const float* const* lines);

template <int MR, int MODE>
void gemmTile(int K, const float* A, const float* const* source, const int* off, float* C, ptrdiff_t ldc,
              bool accumulate, const float* bias, const float* ask, const Finish* finish, const float* const* lines) {
  V acc[MR][kWidth];
#pragma GCC unroll 16
  for (int m = 0; m < MR; ++m)
    for (int v = 0; v < kWidth; ++v) {
      acc[m][v] = zero();
      if (bias && !accumulate) acc[m][v] = MODE == kTurned ? load(bias + v * VL) : set1(bias[m]);
    }
  const float* B = source[0];
  const float *const s0 = source[0], *const s1 = source[1];
  const float *const s2 = MODE == kFromHalves ? source[2] : nullptr, *const s3 =
                                                                         MODE == kFromHalves ? source[3] : nullptr;
  for (int k = 0; k < K; ++k, ask += kLine) {
    __builtin_prefetch(ask);
    if constexpr (MODE == kAsking) __builtin_prefetch(*lines++);
    V b0, b1;
    if constexpr (MODE == kPacked || MODE == kTurned || MODE == kAsking) {
      b0 = load(B), b1 = load(B + VL);
      B += kPanel;
    } else if constexpr (MODE == kFromRows) {
      const ptrdiff_t o = off[k];
      b0 = load(s0 + o), b1 = load(s1 + o);
    } else {
      const ptrdiff_t o = off[k];
      b0 = loadHalves(s0 + o, s1 + o), b1 = loadHalves(s2 + o, s3 + o);
    }
#pragma GCC unroll 16
    for (int m = 0; m < MR; ++m) {
      const V a = set1(A[m]);
      acc[m][0] = fma(a, b0, acc[m][0]);
      acc[m][1] = fma(a, b1, acc[m][1]);
    }
    A += MODE == kTurned ? kPanel : MR;
  }
  if (accumulate)
#pragma GCC unroll 16
    for (int m = 0; m < MR; ++m)
      for (int v = 0; v < kWidth; ++v) acc[m][v] = add(load(C + m * ldc + v * VL), acc[m][v]);
  if constexpr (MODE != kTurned)
    if (finish) finishTile<MR>(*finish, acc);
  const bool streams = finish && finish->streams;
#pragma GCC unroll 16
  for (int m = 0; m < MR; ++m)
    for (int v = 0; v < kWidth; ++v) {
      float* c = C + m * ldc + v * VL;
      if (streams)
        stream(c, acc[m][v]);
      else
        store(c, acc[m][v]);
    }
}

template <int MODE, size_t... I>
constexpr std::array<GemmTile, sizeof...(I)> gemmTable(std::index_sequence<I...>) {
  return {&gemmTile<int(I) + 1, MODE>...};
}
inline GemmTile gemmTileFor(int mode, int rows) {
  static constexpr std::array<GemmTile, kRows> table[5] = {
      gemmTable<kPacked>(std::make_index_sequence<kRows>{}), gemmTable<kFromRows>(std::make_index_sequence<kRows>{}),
      gemmTable<kFromHalves>(std::make_index_sequence<kRows>{}), gemmTable<kTurned>(std::make_index_sequence<kRows>{}),
      gemmTable<kAsking>(std::make_index_sequence<kRows>{})};
  return table[mode][static_cast<size_t>(rows - 1)];
}

// M rows in blocks of nearly equal size: 20 is 10 + 10, not 14 + 6.
struct RowBlocks {
  int count, base, extra;
  explicit RowBlocks(int M, int most = kRows) : count((M + most - 1) / most), base(M / count), extra(M % count) {}
  int size(int b) const { return base + (b < extra); }
  int start(int b) const { return b * base + std::min(b, extra); }
};

// A(m, k) -> blocks [k][rows of the block], block after block.
template <class At>
void packRows(float* to, int M, int K, At at) {
  if (M == 0) return;
  const RowBlocks blocks(M);
  for (int b = 0; b < blocks.count; ++b) {
    const int rows = blocks.size(b), m0 = blocks.start(b);
    float* d = to + static_cast<size_t>(m0) * K;
    for (int k = 0; k < K; ++k)
      for (int m = 0; m < rows; ++m) d[static_cast<size_t>(k) * rows + m] = at(m0 + m, k);
  }
}

// 2. tapTile<GB, J>: C[GB * J][kPanel] (+)= sum_p line_g[p + j * step] * B[p][kPanel]: GB pointers with J adjacent
//    elements each, broadcast straight from unpacked memory. p runs over images x rows x columns; B over the same
//    positions without gaps inside an image.
struct TapRun {
  ptrdiff_t step;  // between adjacent elements; 1 is a compile-time constant
  int images;
  ptrdiff_t imageStep;
  int rows;
  ptrdiff_t rowStep;
  int columns;
  ptrdiff_t bImageStep;
};
using TapTile = void (*)(const float* const* line, const TapRun& run, const float* B, float* C, bool accumulate);

template <int GB, int J, bool ONE>
void tapTile(const float* const* line, const TapRun& run, const float* firstB, float* C, bool accumulate) {
  const ptrdiff_t step = ONE ? 1 : run.step;
  V acc[GB * J][kWidth];
#pragma GCC unroll 16
  for (int m = 0; m < GB * J; ++m)
    for (int v = 0; v < kWidth; ++v) acc[m][v] = zero();
  for (int n = 0; n < run.images; ++n) {
    const float* B = firstB + n * run.bImageStep;
    for (int r = 0; r < run.rows; ++r) {
      const float* l[GB];
#pragma GCC unroll 16
      for (int g = 0; g < GB; ++g) l[g] = line[g] + n * run.imageStep + r * run.rowStep;
      for (int p = 0; p < run.columns; ++p, B += kPanel) {
        const V b0 = load(B), b1 = load(B + VL);
#pragma GCC unroll 16
        for (int g = 0; g < GB; ++g) {
          // Every tap is broadcast from memory, which costs nothing. A compiler that knew these places to be the last round's,
          // one further, would keep numbers in registers and broadcast them where the products are computed.
          const float* tap = l[g] + p;
          asm("" : "+r"(tap));
#pragma GCC unroll 16
          for (int j = 0; j < J; ++j) {
            const V a = set1(tap[j * step]);
            acc[g * J + j][0] = fma(a, b0, acc[g * J + j][0]);
            acc[g * J + j][1] = fma(a, b1, acc[g * J + j][1]);
          }
        }
      }
    }
  }
#pragma GCC unroll 16
  for (int m = 0; m < GB * J; ++m)
    for (int v = 0; v < kWidth; ++v) {
      float* c = C + m * kPanel + v * VL;
      store(c, accumulate ? add(load(c), acc[m][v]) : acc[m][v]);
    }
}

constexpr int kMostTaps = 6;
constexpr int linesPerTile(int J) { return kRows / J < 1 ? 1 : kRows / J; }
template <int J, bool ONE, size_t... I>
constexpr std::array<TapTile, sizeof...(I)> tapTable(std::index_sequence<I...>) {
  return {&tapTile<int(I) + 1, J, ONE>...};
}
template <int J, bool ONE>
TapTile tapTileOf(int lines) {
  static constexpr auto table = tapTable<J, ONE>(std::make_index_sequence<linesPerTile(J)>{});
  return table[static_cast<size_t>(lines - 1)];
}
inline TapTile tapTileFor(int J, bool one, int lines) {
  if (!one) return tapTileOf<3, false>(lines);
  switch (J) {
    case 1:
      return tapTileOf<1, true>(lines);
    case 2:
      return tapTileOf<2, true>(lines);
    case 3:
      return tapTileOf<3, true>(lines);
    case 4:
      return tapTileOf<4, true>(lines);
    case 5:
      return tapTileOf<5, true>(lines);
    default:
      return tapTileOf<6, true>(lines);
  }
}

// 3. panelTile<MR>: C[MR][kPanel] (+)= sum over panels and p of A[panel][m][p] * B[panel][p][kPanel], p < kPanel. Rows of A are
//    kPanel apart, panels of it `step`; those of B follow each other. One pointer serves all rows, whatever their number.
using PanelTile = void (*)(int panels, const float* A, ptrdiff_t step, const float* B, float* C, bool accumulate);

template <int MR>
void panelTile(int panels, const float* A, ptrdiff_t step, const float* B, float* C, bool accumulate) {
  V acc[MR][kWidth];
#pragma GCC unroll 16
  for (int m = 0; m < MR; ++m)
    for (int v = 0; v < kWidth; ++v) acc[m][v] = zero();
  for (int i = 0; i < panels; ++i, A += step)
    for (const float *a = A, *end = A + kPanel; a < end; ++a, B += kPanel) {
      const V b0 = load(B), b1 = load(B + VL);
#pragma GCC unroll 16
      for (int m = 0; m < MR; ++m) {
        const V row = set1(a[m * kPanel]);
        acc[m][0] = fma(row, b0, acc[m][0]);
        acc[m][1] = fma(row, b1, acc[m][1]);
      }
    }
#pragma GCC unroll 16
  for (int m = 0; m < MR; ++m)
    for (int v = 0; v < kWidth; ++v) {
      float* c = C + m * kPanel + v * VL;
      store(c, accumulate ? add(load(c), acc[m][v]) : acc[m][v]);
    }
}

template <size_t... I>
constexpr std::array<PanelTile, sizeof...(I)> panelTable(std::index_sequence<I...>) {
  return {&panelTile<int(I) + 1>...};
}
inline PanelTile panelTileFor(int rows) {
  static constexpr auto table = panelTable(std::make_index_sequence<kRows>{});
  return table[static_cast<size_t>(rows - 1)];
}

// transpose8 for 1 to 8 rows; the missing ones are zero.
INL void transposeRows(const float* s, ptrdiff_t ls, int rows, float* d, ptrdiff_t ld) {
  if (rows == 8) return transpose8(s, ls, d, ld);
  alignas(32) float block[64];
  for (int i = 0; i < 8; ++i)
    if (i < rows)
      copy8(s + i * ls, block + 8 * i);
    else
      zero8(block + 8 * i);
  transpose8(block, 8, d, ld);
}

// s [R][C], rows ls apart -> d [C][kPanel] for R <= kPanel rows; missing rows are zero. Eight rows go on for a while before
// the next eight: where rows are a multiple of a page apart, more of them than a cache has ways would displace each other.
// What lies ASK numbers further in each row is asked for on the way, for the second cache.
template <int ASK = 0>
void toPanel(const float* s, ptrdiff_t ls, int R, int C, float* d) {
  constexpr int kColumns = 64;
  const int r8 = (R + 7) & ~7, c8 = C & ~7;
  for (int c0 = 0; c0 < c8; c0 += kColumns) {
    const int end = std::min(c8, c0 + kColumns);
    for (int r = 0; r < R; r += 8)
      for (int c = c0; c < end; c += 8) {
        for (int m = 0; m < 8 && ASK > 0 && c % kLine == 0; ++m) __builtin_prefetch(s + (r + m) * ls + c + ASK, 0, 2);
        transposeRows(s + r * ls + c, ls, std::min(8, R - r), d + static_cast<size_t>(c) * kPanel + r, kPanel);
      }
    for (int c = c0; c < end; ++c)
      for (int r = r8; r < kPanel; r += 8) zero8(d + static_cast<size_t>(c) * kPanel + r);
  }
  for (int c = c8; c < C; ++c)
    for (int r = 0; r < kPanel; ++r) d[static_cast<size_t>(c) * kPanel + r] = r < R ? s[r * ls + c] : 0.f;
}

}  // namespace crema::kernels::KNS
