// Convolutions with a filter for each channel of 3 x 3, without dilation, a stride of one or two: rows of the plane are read
// where they lie, what is outside of them as zeros by masks. Chains are those of conv_depthwise.h.
namespace crema::kernels::KNS {

constexpr int kTaps3 = 3, kMostRows = 4;  // rows of outputs at once: each row of inputs is read for up to three of them

inline bool readsRows(const ConvShape& s) {
  return s.kh == kTaps3 && s.kw == kTaps3 && s.dilH == 1 && s.dilW == 1 && s.strideH == s.strideW && s.strideH <= 2 &&
         std::max(s.w, s.ow()) <= kMostColumns * VL;
}

// One plane: y[r][x] = start + sum over a, b of w[a][b] X(r STRIDE + a - padH, x STRIDE + b - padW), in this order; BACK: the
// gradient of the input from that of the output, X(r + padH - a, x + padW - b).
template <int STRIDE, bool BACK>
struct RowsOfPlane {
  using Columns = ColumnsOfTaps<kTaps3, STRIDE, BACK>;
  const AllColumns<kTaps3, STRIDE, BACK>& tiles;
  const float *x, *w;
  int h, columns, padH;  // of x
  int oh, ow;
  float start;
  const Epilogue<float>& then;
  int channel;
  size_t at;  // where y lies in its blob

  // Rows [r0, r0 + R) of y, a vector of columns.
  template <int R>
  INL void some(int r0, const Columns& c, const V* weights, float* y) const {
    byPlace(
        c, [&](auto place) __attribute__((always_inline)) { someAt<R, place>(r0, c, weights, y); });
  }
  template <int R, int PLACE>
  INL void someAt(int r0, const Columns& c, const V* weights, float* y) const {
    V acc[R];
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) acc[r] = set1(start);
#pragma GCC unroll 16
    for (int i = 0; i < (R - 1) * STRIDE + kTaps3; ++i) {
      const int row = BACK ? r0 + R - 1 + padH - i : r0 * STRIDE - padH + i;
      V taps[kTaps3] = {zero(), zero(), zero()};
      if (row >= 0 && row < h) c.template read<PLACE>(x + static_cast<ptrdiff_t>(row) * columns, taps);
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) {
        const int a = i - r * STRIDE;
        if (a < 0 || a >= kTaps3) continue;
#pragma GCC unroll 3
        for (int b = 0; b < kTaps3; ++b) acc[r] = fma(weights[a * kTaps3 + b], taps[b], acc[r]);
      }
    }
    const auto offset = [&](int r) { return static_cast<ptrdiff_t>(r0 + (BACK ? R - 1 - r : r)) * ow + c.x0; };
    for (const Step<float>& step : then) {
      if (step.kind != Step<float>::kAdd)
        stepRow<R>(step, channel, nullptr, acc);
      else
        for (int r = 0; r < R; ++r) acc[r] = add(acc[r], c.template readOutputs<PLACE>(step.other + at + offset(r)));
    }
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) c.template write<PLACE>(acc[r], y + offset(r));
  }

  void all(float* y) const {
    V weights[kTaps3 * kTaps3];
    for (int k = 0; k < kTaps3 * kTaps3; ++k) weights[k] = set1(w[k]);
    const AskAhead ask(kMostRows * STRIDE * columns, kMostRows * ow, tiles.count);
    int r = 0;
    for (; r + kMostRows <= oh; r += kMostRows)
      for (int i = 0; i < tiles.count; ++i)
        ask(x + r * STRIDE * columns, y + r * ow, i), some<kMostRows>(r, tiles.of[i], weights, y);
    for (const Columns& c : tiles) {
      if (oh - r == 3) some<3>(r, c, weights, y);
      if (oh - r == 2) some<2>(r, c, weights, y);
      if (oh - r == 1) some<1>(r, c, weights, y);
    }
  }
};

// Planes one after the other: the convolution of `s`, or BACK: the gradient of its input, from what `from` holds.
template <int STRIDE, bool BACK>
void depthwiseRows(Context& context, const ConvShape& s, const float* from, const float* w, const float* bias,
                   float* to, const Epilogue<float>& then) {
  const int h = BACK ? s.oh() : s.h, columns = BACK ? s.ow() : s.w, oh = BACK ? s.h : s.oh(), ow = BACK ? s.w : s.ow();
  const AllColumns<kTaps3, STRIDE, BACK> tiles(columns, ow, s.padW);
  const size_t in = static_cast<size_t>(h) * columns, out = static_cast<size_t>(oh) * ow;
  eachPlanes(context, s.n * s.ic, oh * ow, [&](int first, int last, int) {
    for (size_t i = static_cast<size_t>(first); i < static_cast<size_t>(last); ++i) {
      const size_t c = i % static_cast<size_t>(s.ic);
      RowsOfPlane<STRIDE, BACK>{.tiles = tiles,
                                .x = from + i * in,
                                .w = w + c * kTaps3 * kTaps3,
                                .h = h,
                                .columns = columns,
                                .padH = s.padH,
                                .oh = oh,
                                .ow = ow,
                                .start = bias ? bias[c] : 0.f,
                                .then = then,
                                .channel = static_cast<int>(c),
                                .at = i * out}
          .all(to + i * out);
    }
  });
}

}  // namespace crema::kernels::KNS
