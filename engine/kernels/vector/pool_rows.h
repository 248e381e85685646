// Pooling forward for windows of two or three columns and a stride of one or two along them: rows of planes are read where
// they lie (row_taps.h), and vectors run along rows of outputs. Comparisons and sums go over a window as the reference's do.
namespace crema::kernels::KNS {

inline bool poolsRows(const PoolShape& s) {
  const bool small = (s.kw == 2 || s.kw == 3) && (s.strideW == 1 || s.strideW == 2) && s.padH < s.kh && s.padW < s.kw;
  return small && (s.oh - 1) * s.strideH < s.h + s.padH && (s.ow - 1) * s.strideW < s.w + s.padW &&
         std::max(s.w, s.ow) <= kMostColumns * VL;
}

// The maxima of a vector of windows, of taps in the order in which they are met. KEEPS: the index in the plane is kept as an
// integer's bits in a float vector, which only moves and selects it, without the window's own place until its end.
template <bool KEEPS>
struct Maxima {
  V best, at;
  INL Maxima(V first, V where) : best(first), at(where) {}
  INL void meet(V tap, V where) { take(greater(tap, best), where), best = larger(tap, best); }
  INL void take(Mask which, V tap, V where) { best = select(which, tap, best), take(which, where); }
  // places: of the windows. positive: -1 where the maximum is not above 0.
  INL V index(const int32_t* places, bool positive) const {
    const V index = addBits(at, load(reinterpret_cast<const float*>(places)));
    return positive ? select(greater(best, zero()), index, set1Bits(-1)) : index;
  }

 private:
  INL void take(Mask which, V where) {
    if (KEEPS) at = select(which, where, at);
  }
};

// What is said of the columns of one vector of outputs beside where they lie.
template <int TAPS>
struct PoolColumns {
  bool whole;                     // whether all windows begin inside of the plane
  Mask leading[TAPS];             // which outputs have this tap as the first one that lies inside
  alignas(64) float width[VL];    // of windows, clipped to the padded plane, as averages have it
  alignas(64) int32_t first[VL];  // column of the first tap
};

template <int TAPS, int STRIDE>
struct PoolRows {
  const PoolShape& s;
  AllColumns<TAPS, STRIDE, false> columns;
  PoolColumns<TAPS> of[kMostColumns];

  explicit PoolRows(const PoolShape& shape) : s(shape), columns(s.w, s.ow, s.padW) {
    for (int i = 0; i < columns.count; ++i) {
      const auto lane = [](int from) { return std::clamp((from + STRIDE - 1) / STRIDE, 0, VL); };
      int before = VL;
      for (int b = 0; b < TAPS; ++b) {
        const int column = columns.of[i].first[b], from = lane(std::max(0, -column)),
                  to = lane(std::max(0, s.w - column));
        of[i].leading[b] = lanes(from, std::min(before, to));
        before = from;
      }
      of[i].whole = columns.of[i].first[0] >= 0;
      for (int v = 0; v < VL; ++v) {
        of[i].first[v] = columns.of[i].first[0] + v * STRIDE;
        of[i].width[v] = static_cast<float>(std::min(of[i].first[v] + TAPS, s.w + s.padW) - of[i].first[v]);
      }
    }
  }

  // body(columns, their place, what is said of them, output row, rows [y0, y1) of the plane) for all of an image's outputs.
  template <class Body>
  INL void each(const float* x, const float* y, const Body& body) const {
    const AskAhead ask(std::min(s.strideH, s.h) * s.w, s.ow, columns.count);
    for (int r = 0; r < s.oh; ++r) {
      const int top = r * s.strideH - s.padH;
      for (int i = 0; i < columns.count; ++i) {
        ask(x + r * s.strideH * s.w, y + r * s.ow, i);
        const auto rows = [&](auto place) __attribute__((always_inline)) {
          body(columns.of[i], place, of[i], r, std::max(0, top), std::min(s.h, top + s.kh));
        };
        if constexpr (STRIDE == 1)
          byPlace(columns.of[i], rows);
        else  // at the memory's speed, and code for two places is 1.1 times slower
          rows(std::integral_constant<int, kAnywhere>());
      }
    }
  }

  // What lies outside is no number, and so larger than nothing.
  template <bool KEEPS>
  void maxima(const float* x, float* y, int32_t* mask) const {
    const V nothing = set1(std::numeric_limits<float>::quiet_NaN());
    each(
        x, y,
        [&](const auto& c, auto place, const PoolColumns<TAPS>& o, int r, int y0, int y1)
            __attribute__((always_inline)) {
              V taps[TAPS];
              c.template read<place>(x + y0 * s.w, nothing, taps);
              Maxima<KEEPS> m(taps[0], set1Bits(y0 * s.w));
#pragma GCC unroll 3
              for (int b = 1; b < TAPS; ++b) {
                if (!o.whole) m.take(o.leading[b], taps[b], set1Bits(y0 * s.w + b));
                m.meet(taps[b], set1Bits(y0 * s.w + b));
              }
              for (int h = y0 + 1; h < y1; ++h) {
                c.template read<place>(x + h * s.w, nothing, taps);
#pragma GCC unroll 3
                for (int b = 0; b < TAPS; ++b) m.meet(taps[b], set1Bits(h * s.w + b));
              }
              c.template write<place>(m.best, y + r * s.ow + c.x0);
              if (!KEEPS) return;
              c.template write<place>(m.index(o.first, s.positive), reinterpret_cast<float*>(mask) + r * s.ow + c.x0);
            });
  }

  void averages(const float* x, float* y) const {
    each(
        x, y,
        [&](const auto& c, auto place, const PoolColumns<TAPS>& o, int r, int y0,
            int y1) __attribute__((always_inline)) {
          V sum = zero();
          for (int h = y0; h < y1; ++h) {
            V taps[TAPS];
            c.template read<place>(x + h * s.w, taps);
#pragma GCC unroll 3
            for (int b = 0; b < TAPS; ++b) sum = add(sum, taps[b]);
          }
          const int top = r * s.strideH - s.padH, height = std::min(top + s.kh, s.h + s.padH) - top;
          c.template write<place>(div(sum, mul(set1(static_cast<float>(height)), load(o.width))), y + r * s.ow + c.x0);
        });
  }
};

// use(rows, plane, its first input, its first output) for all planes.
template <class Rows, class Use>
void eachPooledPlane(Context& context, const PoolShape& s, const Rows& rows, const Use& use) {
  eachPlanes(context, s.n * s.c, s.oh * s.ow, [&](int first, int last, int) {
    for (int i = first; i < last; ++i)
      use(rows, static_cast<size_t>(i) * s.h * s.w, static_cast<size_t>(i) * s.oh * s.ow);
  });
}
template <class Use>
void eachPooledPlane(Context& context, const PoolShape& s, const Use& use) {
  const auto by = [&](const auto& rows) { eachPooledPlane(context, s, rows, use); };
  if (s.kw == 2) return s.strideW == 1 ? by(PoolRows<2, 1>(s)) : by(PoolRows<2, 2>(s));
  return s.strideW == 1 ? by(PoolRows<3, 1>(s)) : by(PoolRows<3, 2>(s));
}

}  // namespace crema::kernels::KNS
