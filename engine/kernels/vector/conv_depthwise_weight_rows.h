// The gradient of the weights of a filter of 3 x 3 for each channel, whose planes are read where they lie
// (conv_depthwise_rows.h).
namespace crema::kernels::KNS {

// On every instruction set:
constexpr int kRowChains = 16;  // of a sum over some rows: the output in column x is on x % 16
constexpr int kMostAdded =
    256;  // numbers of a chain before it goes to a double, which narrow planes and tall ones need
constexpr int kWidestRow = 512;  // of a plane that is read in place

inline bool readsRowsForWeights(const ConvShape& s) { return readsRows(s) && std::max(s.w, s.ow()) <= kWidestRow; }

// dw[a][b] += sum over r, x of dy[r][x] X(r STRIDE + a - padH, x STRIDE + b - padW). A chain takes four rows at a time: the
// columns of these in turn, and in each column the rows. It is a float for kMostAdded numbers, of a plane at most; chains c and
// c + 8 are a double from then on.
template <int STRIDE>
class WeightsByRows {
 public:
  static constexpr int kSums = kTaps3 * kTaps3 * 8;  // of a channel: [tap][8]
  explicit WeightsByRows(const ConvShape& s)
      : s_(s),
        oh_(s.oh()),
        ow_(s.ow()),
        rowsPerSum_(kMostRows * std::max(1, kMostAdded / kMostRows / ((ow_ + kRowChains - 1) / kRowChains))),
        tiles_(s.w, ow_, s.padW),
        ask_(kMostRows * STRIDE * s.w, kMostRows * ow_, tiles_.count) {}

  void plane(const float* x, const float* dy, double* sums) const {
    V acc[kSets][kTaps];
    clear(acc);
    for (int r = 0; r < oh_; r += rowsPerSum_) {
      const int end = std::min(oh_, r + rowsPerSum_);
      int r0 = r;
      for (; r0 + kMostRows <= end; r0 += kMostRows) some<kMostRows>(r0, x, dy, acc);
      if (end - r0 == 3) some<3>(r0, x, dy, acc);
      if (end - r0 == 2) some<2>(r0, x, dy, acc);
      if (end - r0 == 1) some<1>(r0, x, dy, acc);
      addTo(sums, acc);
    }
  }
  // dw [tap] of a channel, from its sums: a binary tree over the eight.
  static void finish(double* sums, bool accumulate, float* dw) {
    for (int t = 0; t < kTaps; ++t, sums += 8) {
      for (int half = 4; half; half /= 2)
        for (int i = 0; i < half; ++i) sums[i] += sums[i + half];
      dw[t] = static_cast<float>(accumulate ? dw[t] + sums[0] : sums[0]);
    }
  }

 private:
  using Columns = ColumnsOfTaps<kTaps3, STRIDE, false>;
  static constexpr int kTaps = kTaps3 * kTaps3, kSets = kRowChains / VL;

  static void clear(V (*acc)[kTaps]) {
    for (int set = 0; set < kSets; ++set)
      for (V& v : acc[set]) v = zero();
  }
  static void addTo(double* sums, V (*acc)[kTaps]) {
    for (int t = 0; t < kTaps; ++t, sums += 8) {
      D8 wide[kRowChains / 8];
      for (int set = 0; set < kSets; ++set) widen(acc[set][t], wide + set * VL / 8);
      store8(sums, load8(static_cast<const double*>(sums)) + (wide[0] + wide[1]));
    }
    clear(acc);
  }

  // Rows [r0, r0 + R) of dy; the columns of a set of chains in turn, which stay in registers.
  template <int R>
  INL void some(int r0, const float* x, const float* dy, V (*sums)[kTaps]) const {
    for (int set = 0; set < kSets; ++set) {
      V acc[kTaps];
#pragma GCC unroll 9
      for (int t = 0; t < kTaps; ++t) acc[t] = sums[set][t];
      for (int i = set; i < tiles_.count; i += kSets) {
        ask_.toRead(x + r0 * STRIDE * s_.w, dy + r0 * ow_, i);
        const Columns& c = tiles_.of[i];
        byPlace(
            c, [&](auto place) __attribute__((always_inline)) { someColumns<R, place>(r0, c, x, dy, acc); });
      }
#pragma GCC unroll 9
      for (int t = 0; t < kTaps; ++t) sums[set][t] = acc[t];
    }
  }
  template <int R, int PLACE>
  INL void someColumns(int r0, const Columns& c, const float* x, const float* dy, V* acc) const {
    V gradient[R];
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r)
      gradient[r] = c.template readOutputs<PLACE>(dy + static_cast<ptrdiff_t>(r0 + r) * ow_ + c.x0);
#pragma GCC unroll 16
    for (int i = 0; i < (R - 1) * STRIDE + kTaps3; ++i) {
      const int row = r0 * STRIDE - s_.padH + i;
      if (row < 0 || row >= s_.h) continue;
      V taps[kTaps3];
      c.template readForSums<PLACE>(x + static_cast<ptrdiff_t>(row) * s_.w, taps);
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) {
        const int a = i - r * STRIDE;
        if (a < 0 || a >= kTaps3) continue;
#pragma GCC unroll 3
        for (int b = 0; b < kTaps3; ++b) acc[a * kTaps3 + b] = fma(gradient[r], taps[b], acc[a * kTaps3 + b]);
      }
    }
  }

  const ConvShape& s_;
  int oh_, ow_, rowsPerSum_;
  AllColumns<kTaps3, STRIDE, false> tiles_;
  AskAhead ask_;
};

// Some channels, which lie side by side in memory, are a task; a channel's images are added in turn.
template <int STRIDE>
void depthwiseWeightRows(Context& context, const ConvShape& s, const float* x, const float* dy, float* dw,
                         bool accumulate) {
  const WeightsByRows<STRIDE> rows(s);
  constexpr int kSums = WeightsByRows<STRIDE>::kSums, kTaps = kTaps3 * kTaps3;
  const size_t in = static_cast<size_t>(s.h) * s.w, out = static_cast<size_t>(s.oh()) * s.ow();
  const int together = std::clamp(s.ic / (4 * context.pool().size()), 1, 64);
  context.pool().run((s.ic + together - 1) / together, [&](int t, int) {
    const int c0 = t * together, last = std::min(s.ic, c0 + together);
    std::vector<double> sums(static_cast<size_t>(last - c0) * kSums, 0.0);
    for (int n = 0; n < s.n; ++n)
      for (int c = c0; c < last; ++c) {
        const size_t i = static_cast<size_t>(n) * s.ic + static_cast<size_t>(c);
        rows.plane(x + i * in, dy + i * out, &sums[static_cast<size_t>(c - c0) * kSums]);
      }
    for (int c = c0; c < last; ++c)
      WeightsByRows<STRIDE>::finish(&sums[static_cast<size_t>(c - c0) * kSums], accumulate, dw + c * kTaps);
  });
}

}  // namespace crema::kernels::KNS
