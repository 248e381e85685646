// Convolutions with a filter for each channel of 3 x 3, without dilation, a stride of one or two: rows of the plane are read
// where they lie, what is outside of them as zeros by masks. Chains are those of conv_depthwise.h.
namespace crema::kernels::KNS {

constexpr int kTaps3 = 3, kMostRows = 4;  // rows of outputs at once: each row of inputs is read for up to three of them
constexpr int kMostColumns = 64;          // vectors

inline bool readsRows(const ConvShape& s) {
  return s.kh == kTaps3 && s.kw == kTaps3 && s.dilH == 1 && s.dilW == 1 && s.strideH == s.strideW && s.strideH <= 2 &&
         std::max(s.w, s.ow()) <= kMostColumns * VL;
}

// Which of the columns from `first` on lie in a plane's row.
inline Mask inRow(int first, int w) { return lanes(std::clamp(-first, 0, VL), std::clamp(w - first, 0, VL)); }

// The columns that meet the three taps of a row of the filter, for a vector of outputs.
template <int STRIDE>
struct ColumnsOfTaps {
  int x0;
  Mask out;
  int first[kTaps3];
  Mask mask[kTaps3][STRIDE];
};
// For x of `columns` columns and rows of `ow` outputs.
template <int STRIDE, bool BACK>
struct AllColumns {
  ColumnsOfTaps<STRIDE> of[kMostColumns];
  int count = 0, askIn, askOut;  // how much of what the next rows read and write a tile asks for
  AllColumns(int columns, int ow, int padW) {
    for (int x0 = 0; x0 < ow; x0 += VL) {
      ColumnsOfTaps<STRIDE>& c = of[count++];
      c.x0 = x0, c.out = lanes(0, std::min(VL, ow - x0));
      for (int b = 0; b < kTaps3; ++b) {
        c.first[b] = BACK ? x0 + padW - b : x0 * STRIDE + b - padW;
        for (int i = 0; i < STRIDE; ++i) c.mask[b][i] = inRow(c.first[b] + i * VL, columns);
      }
    }
    askIn = (kMostRows * STRIDE * columns + count - 1) / std::max(1, count);
    askOut = (kMostRows * ow + count - 1) / std::max(1, count);
  }
  const ColumnsOfTaps<STRIDE>* begin() const { return of; }
  const ColumnsOfTaps<STRIDE>* end() const { return of + count; }
};

// One plane: y[r][x] = start + sum over a, b of w[a][b] X(r STRIDE + a - padH, x STRIDE + b - padW), in this order; BACK: the
// gradient of the input from that of the output, X(r + padH - a, x + padW - b).
template <int STRIDE, bool BACK>
struct RowsOfPlane {
  using Columns = ColumnsOfTaps<STRIDE>;
  const AllColumns<STRIDE, BACK>& tiles;
  const float *x, *w;
  int h, columns, padH;  // of x
  int oh, ow;
  float start = 0;
  const Epilogue<float>* then = nullptr;
  int channel = 0;
  size_t at = 0;  // where y lies in its blob

  INL void read(const float* row, const Columns& c, V* taps) const {
    if constexpr (STRIDE == 1) {
#pragma GCC unroll 3
      for (int b = 0; b < kTaps3; ++b) taps[b] = load(c.mask[b][0], row + c.first[b]);
    } else {  // columns 2 x and 2 x + 1 from the same two vectors, 2 x + 2 from those two columns on
      const V a = load(c.mask[0][0], row + c.first[0]), b = load(c.mask[0][1], row + c.first[0] + VL);
      taps[0] = evens(a, b), taps[1] = odds(a, b);
      taps[2] = evens(load(c.mask[2][0], row + c.first[2]), load(c.mask[2][1], row + c.first[2] + VL));
    }
  }

  // Asks for a tile's share of the lines that the rows kAhead numbers further will read and write; planes follow each other.
  static constexpr int kAhead = 1024;
  INL void ask(int r0, int tile, const float* y) const {
    const float* from = x + r0 * STRIDE * columns + tile * tiles.askIn + kAhead;
    const float* to = y + r0 * ow + tile * tiles.askOut + kAhead;
    for (int i = 0; i < tiles.askIn; i += kLine) __builtin_prefetch(from + i);
    for (int i = 0; i < tiles.askOut; i += kLine) __builtin_prefetch(to + i, 1);
  }

  // Rows [r0, r0 + R) of y, a vector of columns.
  template <int R>
  INL void some(int r0, const Columns& c, const V* weights, float* y) const {
    V acc[R];
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) acc[r] = set1(start);
#pragma GCC unroll 16
    for (int i = 0; i < (R - 1) * STRIDE + kTaps3; ++i) {
      const int row = BACK ? r0 + R - 1 + padH - i : r0 * STRIDE - padH + i;
      V taps[kTaps3] = {zero(), zero(), zero()};
      if (row >= 0 && row < h) read(x + static_cast<ptrdiff_t>(row) * columns, c, taps);
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) {
        const int a = i - r * STRIDE;
        if (a < 0 || a >= kTaps3) continue;
#pragma GCC unroll 3
        for (int b = 0; b < kTaps3; ++b) acc[r] = fma(weights[a * kTaps3 + b], taps[b], acc[r]);
      }
    }
    const auto place = [&](int r) { return static_cast<ptrdiff_t>(r0 + (BACK ? R - 1 - r : r)) * ow + c.x0; };
    if (then)
      for (const Step<float>& step : *then) {
        if (step.kind != Step<float>::kAdd)
          stepRow<R>(step, channel, nullptr, acc);
        else
          for (int r = 0; r < R; ++r) acc[r] = add(acc[r], load(c.out, step.other + at + place(r)));
      }
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) store(c.out, y + place(r), acc[r]);
  }

  void all(float* y) const {
    V weights[kTaps3 * kTaps3];
    for (int k = 0; k < kTaps3 * kTaps3; ++k) weights[k] = set1(w[k]);
    int r = 0;
    for (; r + kMostRows <= oh; r += kMostRows)
      for (int i = 0; i < tiles.count; ++i) ask(r, i, y), some<kMostRows>(r, tiles.of[i], weights, y);
    for (const Columns& c : tiles) {
      if (oh - r == 3) some<3>(r, c, weights, y);
      if (oh - r == 2) some<2>(r, c, weights, y);
      if (oh - r == 1) some<1>(r, c, weights, y);
    }
  }
};

}  // namespace crema::kernels::KNS
