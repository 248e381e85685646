// The gradient of the input of a filter of 3 x 3 for each channel with a stride of two: rows of the output's gradient are read
// where they lie (conv_depthwise_rows.h).
namespace crema::kernels::KNS {

// dx [h][w] of a plane. Rows 2 M - padH and 2 M + 1 - padH meet rows M and M - 1 of dy, and so do columns; taps come in the
// order of the kernel's rows, and along these. ODD, where padW is: of a vector of m each one's second column comes first,
// and then the first one of m + 1. So vectors begin where a row of dx does, with a pad of none and of one, as stores want it.
template <bool ODD>
class StrideTwoBack {
 public:
  explicit StrideTwoBack(const ConvShape& s)
      : s_(s),
        oh_(s.oh()),
        ow_(s.ow()),
        vectors_(((s.w + s.padW - ODD + 1) / 2 + VL - 1) / VL),
        ask_(ow_, 2 * s.w, vectors_) {
    for (int i = 0; i < vectors_; ++i) {
      const int m = i * VL, other = m + kOther, column = 2 * m - s.padW + ODD;
      columns_[i] = {
          column,
          inRow(m, ow_),
          inRow(other, ow_),
          inRow(column, s.w),
          inRow(column + VL, s.w),
          std::min(m, other) >= 0 && std::max(m, other) + VL <= ow_ && column >= 0 && column + 2 * VL <= s.w};
    }
  }

  void plane(const float* dy, const float* w, float* dx) const {
    V weights[kTaps3 * kTaps3];
    for (int k = 0; k < kTaps3 * kTaps3; ++k) weights[k] = set1(w[k]);
    for (int M = 0; 2 * M - s_.padH < s_.h; ++M)
      for (int i = 0; i < vectors_; ++i) {
        ask_(dy + static_cast<ptrdiff_t>(std::min(M, oh_)) * ow_, dx + static_cast<ptrdiff_t>(2 * M) * s_.w, i);
        columns_[i].whole ? pair<true>(M, i, dy, weights, dx) : pair<false>(M, i, dy, weights, dx);
      }
  }

 private:
  static constexpr int kOther = ODD ? 1 : -1;
  struct Columns {
    int first;         // of dx
    Mask same, other;  // columns m and m + kOther of dy
    Mask low, high;    // of dx
    bool whole;        // all four: masks take their time
  };

  // Two rows of dx, two vectors of columns.
  template <bool WHOLE>
  INL void pair(int M, int i, const float* dy, const V* w, float* dx) const {
    const Columns& c = columns_[i];
    const auto read = [&](int row, int away, Mask mask) __attribute__((always_inline)) {
      if (row < 0 || row >= oh_) return zero();
      const float* from = dy + static_cast<ptrdiff_t>(row) * ow_ + i * VL + away;
      return WHOLE ? load(from) : load(mask, from);
    };
    const V same = read(M, 0, c.same), other = read(M, kOther, c.other), sameAbove = read(M - 1, 0, c.same),
            otherAbove = read(M - 1, kOther, c.other);
    // What the first of two columns meets, in rows M and M - 1: columns m and m - 1 of its own m.
    const V here = ODD ? other : same, left = ODD ? same : other, hereAbove = ODD ? otherAbove : sameAbove,
            leftAbove = ODD ? sameAbove : otherAbove;
    const int row = 2 * M - s_.padH;
    if (row >= 0)
      write<WHOLE>(c, fma(w[8], leftAbove, fma(w[6], hereAbove, fma(w[2], left, fma(w[0], here, zero())))),
                   fma(w[7], sameAbove, fma(w[1], same, zero())), dx + static_cast<ptrdiff_t>(row) * s_.w);
    if (row + 1 >= 0 && row + 1 < s_.h)
      write<WHOLE>(c, fma(w[5], left, fma(w[3], here, zero())), fma(w[4], same, zero()),
                   dx + static_cast<ptrdiff_t>(row + 1) * s_.w);
  }
  template <bool WHOLE>
  INL void write(const Columns& c, V first, V second, float* to) const {
    if (ODD) std::swap(first, second);
    const V low = zipLow(first, second), high = zipHigh(first, second);
    to += c.first;
    if (WHOLE) return store(to, low), store(to + VL, high);
    store(c.low, to, low), store(c.high, to + VL, high);
  }

  const ConvShape& s_;
  int oh_, ow_, vectors_;  // of m
  AskAhead ask_;
  Columns columns_[kMostColumns + 1];
};

template <bool ODD>
void depthwiseStrideTwoBack(Context& context, const ConvShape& s, const float* dy, const float* w, float* dx) {
  const StrideTwoBack<ODD> back(s);
  const size_t in = static_cast<size_t>(s.h) * s.w, out = static_cast<size_t>(s.oh()) * s.ow();
  eachPlanes(context, s.n * s.ic, s.h * s.w, [&](int first, int last, int) {
    for (size_t i = static_cast<size_t>(first); i < static_cast<size_t>(last); ++i)
      back.plane(dy + i * out, w + i % static_cast<size_t>(s.ic) * kTaps3 * kTaps3, dx + i * in);
  });
}

}  // namespace crema::kernels::KNS
