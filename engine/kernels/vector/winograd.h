// Minimal filtering (S. Winograd, Arithmetic Complexity of Computations, 1980; A. Lavin and S. Gray, CVPR 2016) with two
// outputs at a time along each axis:
//   y = A' [ (G g) * (B' x) ],   1-D: R taps, R + 1 inputs, kProducts products instead of 2 R
// and the same along the other axis. Three taps take the points 0, 1, -1 and infinity; five are three and two. Of all such
// filters these round least: B and A have only 0, 1 and -1, G a half as well. The points 2 and 1/2, of which longer
// outputs have need, lose a digit. Each product is summed over channels in chains of fused multiply-adds, as every sum here.
namespace crema::kernels::KNS {

// Each function along one axis; `Back` are the transposes, for gradients.
struct ThreeTaps {
  static constexpr int kTaps = 3, kInputs = 4, kProducts = 4;
  INL static void inputs(const V* x, V* u) {
    u[0] = sub(x[0], x[2]), u[1] = add(x[1], x[2]), u[2] = sub(x[2], x[1]), u[3] = sub(x[1], x[3]);
  }
  INL static void inputsBack(const V* u, V* x) {
    x[0] = u[0], x[1] = add(sub(u[1], u[2]), u[3]), x[2] = sub(add(u[1], u[2]), u[0]), x[3] = sub(zero(), u[3]);
  }
  INL static void weights(const V* g, V* u) {
    const V half = set1(0.5f), outer = add(g[0], g[2]);
    u[0] = g[0], u[1] = mul(add(outer, g[1]), half), u[2] = mul(sub(outer, g[1]), half), u[3] = g[2];
  }
  INL static void outputs(const V* m, V* y) { y[0] = add(add(m[0], m[1]), m[2]), y[1] = sub(sub(m[1], m[2]), m[3]); }
  INL static void outputsBack(const V* y, V* m) {
    m[0] = y[0], m[1] = add(y[0], y[1]), m[2] = sub(y[0], y[1]), m[3] = sub(zero(), y[1]);
  }
  INL static void weightsBack(const V* u, V* g) {
    const V half = set1(0.5f), sum = mul(add(u[1], u[2]), half);
    g[0] = add(u[0], sum), g[1] = mul(sub(u[1], u[2]), half), g[2] = add(sum, u[3]);
  }
};

struct FiveTaps {
  static constexpr int kTaps = 5, kInputs = 6, kProducts = 7;
  INL static void inputs(const V* x, V* u) {
    ThreeTaps::inputs(x, u);
    u[4] = sub(x[3], x[4]), u[5] = x[4], u[6] = sub(x[4], x[5]);
  }
  INL static void inputsBack(const V* u, V* x) {
    ThreeTaps::inputsBack(u, x);
    x[3] = sub(u[4], u[3]), x[4] = add(sub(u[5], u[4]), u[6]), x[5] = sub(zero(), u[6]);
  }
  INL static void weights(const V* g, V* u) {
    ThreeTaps::weights(g, u);
    u[4] = g[3], u[5] = add(g[3], g[4]), u[6] = g[4];
  }
  INL static void outputs(const V* m, V* y) {
    ThreeTaps::outputs(m, y);
    y[0] = add(y[0], add(m[4], m[5])), y[1] = add(y[1], sub(m[5], m[6]));
  }
  INL static void outputsBack(const V* y, V* m) {
    ThreeTaps::outputsBack(y, m);
    m[4] = y[0], m[5] = m[1], m[6] = m[3];
  }
  INL static void weightsBack(const V* u, V* g) {
    ThreeTaps::weightsBack(u, g);
    g[3] = add(u[4], u[5]), g[4] = add(u[5], u[6]);
  }
};

// Both axes: x(i), i < From From -> to(i, j, value), i, j < To. Down columns, then along rows.
template <int From, int To, class Read, class Axis, class Write>
INL void alongBoth(const Read& x, const Axis& axis, const Write& to) {
  V t[To][From];
#pragma GCC unroll 8
  for (int b = 0; b < From; ++b) {
    V column[From], u[To];
#pragma GCC unroll 8
    for (int a = 0; a < From; ++a) column[a] = x(a * From + b);
    axis(column, u);
#pragma GCC unroll 8
    for (int i = 0; i < To; ++i) t[i][b] = u[i];
  }
#pragma GCC unroll 8
  for (int i = 0; i < To; ++i) {
    V u[To];
    axis(t[i], u);
#pragma GCC unroll 8
    for (int j = 0; j < To; ++j) to(i, j, u[j]);
  }
}

// Of x [From][From], adjacent ones `step` floats apart.
template <int From, int To, class Axis, class Write>
INL void alongBoth(const float* x, ptrdiff_t step, const Axis& axis, const Write& to) {
  alongBoth<From, To>(
      [&](int i) __attribute__((always_inline)) { return load(x + i * step); }, axis, to);
}

// Square kernels of three or five taps without stride, where at least a quarter of the products is saved (the last row and
// column of tiles may be half empty) and what the transforms cost is spread over enough channels, for five taps over enough
// outputs (0101). 0: none of these.
inline int winogradTaps(const ConvShape& s) {
  const bool known = s.kh == s.kw && (s.kh == 3 || s.kh == 5) && s.strideH == 1 && s.strideW == 1 && s.dilH == 1 &&
                     s.dilW == 1 && s.padH < s.kh && s.padW < s.kw;
  const int icg = s.ic / s.groups, ocg = s.oc / s.groups, outputs = s.oh() * s.ow();
  if (!known || s.oh() < 2 || s.ow() < 2 || icg < 16 || ocg < 16) return 0;
  if (s.kh == 5 && outputs < 49) return 0;
  const int64_t products = s.kh == 3 ? 16 : 49, tiles = int64_t{(s.oh() + 1) / 2} * ((s.ow() + 1) / 2);
  return 4 * tiles * products <= 3 * int64_t{outputs} * s.kh * s.kw ? s.kh : 0;
}

// The convolution of dy that gives the gradient of the input.
inline ConvShape winogradBack(const ConvShape& s) {
  return {s.n, s.oc, s.oh(), s.ow(), s.ic, s.kh, s.kw, 1, 1, s.kh - 1 - s.padH, s.kw - 1 - s.padW, 1, 1, s.groups};
}

// winogradTaps() of that; where outputs or taps lie apart it is another convolution.
inline int winogradBackTaps(const ConvShape& s) {
  const bool dense = s.strideH == 1 && s.strideW == 1 && s.dilH == 1 && s.dilW == 1;
  return dense ? winogradTaps(winogradBack(s)) : 0;
}

// winogradTaps() of the convolution itself, whose transpose gives the gradient of its input, where this is less: it has a tile
// for 2 x 2 outputs, what winogradBackTaps() is of one for 2 x 2 inputs.
inline int winogradSpreadTaps(const ConvShape& s) {
  const auto tiles = [](int h, int w) { return int64_t{(h + 1) / 2} * ((w + 1) / 2); };
  const int taps = winogradTaps(s);
  return taps > 0 && 4 * tiles(s.oh(), s.ow()) <= 3 * tiles(s.h, s.w) ? taps : 0;
}

// Planes of `rows` x `columns` for each parity of rows and columns, so that what tiles side by side need lies side by side.
inline Planes parityPlanes(ConvShape s, int rows, int columns) {
  s.strideH = s.strideW = 2;
  Planes planes(s, false);
  planes.rows = rows, planes.columns = columns;
  planes.channel = static_cast<size_t>(4) * rows * columns;
  return planes;
}
inline Planes winogradPlanes(const ConvShape& s) {
  return parityPlanes(s, (s.oh() + 1) / 2 + s.kh / 2, (s.ow() + 1) / 2 + s.kw / 2);
}

// Tiles in the order (image, row, column). `out` counts tiles as if a row had kTileRow of them.
constexpr ptrdiff_t kTileRow = ptrdiff_t{1} << 32;
inline PositionMap winogradMap(const ConvShape& s, const Planes& planes, int rows, int images) {
  return {.rows = rows,
          .columns = (s.ow() + 1) / 2,
          .images = images,
          .sourceImage = static_cast<ptrdiff_t>(planes.channel) * s.ic,
          .sourceRow = planes.columns,
          .outImage = rows * kTileRow,
          .outRow = kTileRow};
}

template <class F>
std::vector<int> winogradOffsets(const Planes& planes, int channels) {
  constexpr int kSquare = F::kInputs * F::kInputs;
  std::array<int, kSquare> first;  // of channel 0
  for (int i = 0; i < kSquare; ++i) first[static_cast<size_t>(i)] = planes.off(0, i / F::kInputs, i % F::kInputs);
  std::vector<int> off(static_cast<size_t>(channels) * kSquare);
  int* to = off.data();
  for (int c = 0, channel = 0; c < channels; ++c, channel += static_cast<int>(planes.channel))
    for (const int place : first) *to++ = channel + place;
  return off;
}

// A panel of tiles of some channels: to [product][productStep] + [channel][kPanel]. READ: how a vector of tiles is read.
enum class TileReads { Rows, Halves, Packed };
template <class F, TileReads READ>
void transformInputs(const PanelPlan& p, const float* source, const int* off, int channels, ptrdiff_t productStep,
                     float* to) {
  constexpr int kPart = 4, kSquare = F::kInputs * F::kInputs;  // channels that stay in the first cache
  alignas(64) float raw[READ == TileReads::Packed ? kPart * kSquare * kPanel : 1];
  for (int c = 0; c < channels; ++c, off += kSquare) {
    const float* packed = raw + (READ == TileReads::Packed ? c % kPart * kSquare * kPanel : 0);
    if (READ == TileReads::Packed && c % kPart == 0)
      packPanel(p, source, off, 0, std::min(kPart, channels - c) * kSquare, raw);
    for (int v = 0; v < kWidth; ++v) {
      float* d = to + static_cast<ptrdiff_t>(c) * kPanel + v * VL;
      const float *left = source + p.half[2 * v], *right = source + p.half[2 * v + 1];
      alongBoth<F::kInputs, F::kProducts>(
          [&](int i) __attribute__((always_inline)) {
            if constexpr (READ == TileReads::Rows) return load(left + off[i]);
            if constexpr (READ == TileReads::Halves) return loadHalves(left + off[i], right + off[i]);
            if constexpr (READ == TileReads::Packed) return load(packed + i * kPanel + v * VL);
          },
          [](const V* x, V* u) { F::inputs(x, u); },
          [&](int i, int j, V u) { store(d + (i * F::kProducts + j) * productStep, u); });
    }
  }
}

template <class F>
void transformInputs(const PanelPlan& p, const float* source, const int* off, int channels, ptrdiff_t productStep,
                     float* to) {
  const auto of = p.rowsFit     ? &transformInputs<F, TileReads::Rows>
                  : p.halvesFit ? &transformInputs<F, TileReads::Halves>
                                : &transformInputs<F, TileReads::Packed>;
  of(p, source, off, channels, productStep, to);
}

}  // namespace crema::kernels::KNS
