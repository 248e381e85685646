// The gradient of the input of a filter of 3 x 3 for each channel with a stride of two: rows of the output's gradient are read
// where they lie (conv_depthwise_rows.h).
namespace crema::kernels::KNS {

// dx [h][w] of a plane. Rows 2 M - padH and 2 M + 1 - padH meet rows M and M - 1 of dy, and so do columns; taps come in the order
// of the kernel's rows, and along these.
class StrideTwoBack {
 public:
  explicit StrideTwoBack(const ConvShape& s)
      : s_(s), oh_(s.oh()), ow_(s.ow()), pairs_((s.w + s.padW + 1) / 2), ask_(ow_, 2 * s.w, (pairs_ + VL - 1) / VL) {
    for (int i = 0; i * VL < pairs_; ++i) {
      const int m = i * VL, column = 2 * m - s.padW;
      columns_[i] = {column,
                     inRow(m, ow_),
                     inRow(m - 1, ow_),
                     inRow(column, s.w),
                     inRow(column + VL, s.w),
                     column >= 0 && column + 2 * VL <= s.w};
    }
  }

  void plane(const float* dy, const float* w, float* dx) const {
    V weights[kTaps3 * kTaps3];
    for (int k = 0; k < kTaps3 * kTaps3; ++k) weights[k] = set1(w[k]);
    for (int M = 0; 2 * M - s_.padH < s_.h; ++M)
      for (int i = 0; i * VL < pairs_; ++i) {
        ask_(dy + static_cast<ptrdiff_t>(std::min(M, oh_)) * ow_, dx + static_cast<ptrdiff_t>(2 * M) * s_.w, i);
        pair(M, i, dy, weights, dx);
      }
  }

 private:
  struct Columns {
    int first;          // of dx
    Mask here, before;  // columns m and m - 1 of dy
    Mask low, high;     // of dx
    bool whole;         // both: masked stores take their time
  };

  // Two rows of dx, two vectors of columns.
  INL void pair(int M, int i, const float* dy, const V* w, float* dx) const {
    const Columns& c = columns_[i];
    const auto read = [&](int row, int column, Mask mask) __attribute__((always_inline)) {
      return row >= 0 && row < oh_ ? load(mask, dy + static_cast<ptrdiff_t>(row) * ow_ + column) : zero();
    };
    const V a = read(M, i * VL, c.here), b = read(M, i * VL - 1, c.before), below = read(M - 1, i * VL, c.here),
            d = read(M - 1, i * VL - 1, c.before);
    const int row = 2 * M - s_.padH;
    if (row >= 0)
      write(c, fma(w[8], d, fma(w[6], below, fma(w[2], b, fma(w[0], a, zero())))),
            fma(w[7], below, fma(w[1], a, zero())), dx + static_cast<ptrdiff_t>(row) * s_.w);
    if (row + 1 >= 0 && row + 1 < s_.h)
      write(c, fma(w[5], b, fma(w[3], a, zero())), fma(w[4], a, zero()), dx + static_cast<ptrdiff_t>(row + 1) * s_.w);
  }
  INL void write(const Columns& c, V even, V odd, float* to) const {
    const V low = zipLow(even, odd), high = zipHigh(even, odd);
    to += c.first;
    if (c.whole) return store(to, low), store(to + VL, high);
    store(c.low, to, low), store(c.high, to + VL, high);
  }

  const ConvShape& s_;
  int oh_, ow_, pairs_;  // pairs_: of columns of dx
  AskAhead ask_;
  Columns columns_[kMostColumns + 1];
};

inline void depthwiseStrideTwoBack(Context& context, const ConvShape& s, const float* dy, const float* w, float* dx) {
  const StrideTwoBack back(s);
  const size_t in = static_cast<size_t>(s.h) * s.w, out = static_cast<size_t>(s.oh()) * s.ow();
  eachPlanes(context, s.n * s.ic, s.h * s.w, [&](int first, int last, int) {
    for (size_t i = static_cast<size_t>(first); i < static_cast<size_t>(last); ++i)
      back.plane(dy + i * out, w + i % static_cast<size_t>(s.ic) * kTaps3 * kTaps3, dx + i * in);
  });
}

}  // namespace crema::kernels::KNS
