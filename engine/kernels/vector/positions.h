// One driver for convolution forward, its way back to the input, and the inner product's way back:
//   out[m][q] = sum_k A[m][k] * source[off[k] + pos(q)],  q = (image, row, column)
// Blocks: 8 panels of positions, 256 of k, rows in blocks of the tile. None of these touches the bits.
namespace crema::kernels::KNS {

// Planes: one copy that pads, splits strides into phases and so makes every convolution a stride-1 one.
//   value(c, r, q, y, x) = X[c][y * strideH + r - padH][x * strideW + q - padW], zero outside; r < phasesH, q < phasesW
struct Planes {
  int h, w, strideH, strideW, padH, padW, dilH, dilW, phasesH, phasesW, rows, columns;
  size_t channel;
  bool plain;  // the input itself serves: nothing to pad, nothing to split
  explicit Planes(const ConvShape& s, bool exact)
      : h(s.h), w(s.w), strideH(s.strideH), strideW(s.strideW), padH(s.padH), padW(s.padW), dilH(s.dilH), dilW(s.dilW),
        phasesH(std::min(strideH, (s.kh - 1) * dilH + 1)), phasesW(std::min(strideW, (s.kw - 1) * dilW + 1)),
        rows(s.oh() + (s.kh - 1) * dilH / strideH), columns(s.ow() + (s.kw - 1) * dilW / strideW),
        plain(exact && strideH == 1 && strideW == 1 && padH == 0 && padW == 0) {
    if (plain) rows = h, columns = w;
    channel = static_cast<size_t>(phasesH) * phasesW * rows * columns;
  }
  int off(int c, int a, int b) const {
    const int y = a * dilH, x = b * dilW;
    return static_cast<int>((static_cast<size_t>(c * phasesH + y % strideH) * phasesW + x % strideW) * rows * columns +
                            static_cast<size_t>(y / strideH) * columns + x / strideW);
  }
  void build(const float* x, int channels, float* d) const {
    for (int c = 0; c < channels; ++c, x += static_cast<size_t>(h) * w)
      for (int r = 0; r < phasesH; ++r)
        for (int q = 0; q < phasesW; ++q)
          for (int y = 0; y < rows; ++y, d += columns) row(x, y * strideH + r - padH, q, d);
  }
  void row(const float* x, int from, int q, float* d) const {
    if (from < 0 || from >= h) {
      std::memset(d, 0, static_cast<size_t>(columns) * 4);
      return;
    }
    int x0 = 0;
    while (x0 < columns && x0 * strideW + q - padW < 0) d[x0++] = 0;
    const int x1 = std::max(x0, std::min(columns, w - 1 - q + padW < 0 ? 0 : (w - 1 - q + padW) / strideW + 1));
    const float* s = x + static_cast<size_t>(from) * w + (static_cast<ptrdiff_t>(x0) * strideW + q - padW);
    if (strideW == 1) std::memcpy(d + x0, s, static_cast<size_t>(x1 - x0) * 4);
    else if (strideW == 2) for (int i = 0; i < x1 - x0; ++i) d[x0 + i] = s[2 * i];
    else for (int i = 0; i < x1 - x0; ++i) d[x0 + i] = s[static_cast<ptrdiff_t>(i) * strideW];
    for (int i = x1; i < columns; ++i) d[i] = 0;
  }
};

// Where position q reads and where it writes. With `range`, positions go (row, image, column) and a panel leaves out the kernel rows
// that meet padding only: part of the mathematics (sums over aligned groups of 32 positions), the same on every instruction set.
struct PositionMap {
  int rows, columns;
  ptrdiff_t sourceImage, sourceRow, outImage, outRow, outColumn, outM;
  const int* range = nullptr;  // per output row: first and last + 1 kernel row that meets the image
  int kPerRow = 0, images = 1;
  void at(int q, int& n, int& r, int& c) const {
    if (range) r = q / (images * columns), n = q / columns % images, c = q % columns;
    else n = q / (rows * columns), r = q / columns % rows, c = q % columns;
  }
};

struct Segment { int vector, from, to; ptrdiff_t source; };
struct PanelPlan {
  ptrdiff_t half[2 * kWidth];
  int segments;
  Segment segment[kPanel];
  bool rowsFit, halvesFit, direct;  // direct: the panel is one run of the output
  ptrdiff_t out;
  int q0, length, kFrom, kTo;
};

inline void planRange(PanelPlan& p, const PositionMap& map, int total) {
  const int group = p.q0 / 32 * 32, last = std::min(group + 32, total) - 1, per = map.images * map.columns;
  int from = 1 << 20, to = 0;
  for (int r = group / per; r <= last / per; ++r) from = std::min(from, map.range[2 * r]), to = std::max(to, map.range[2 * r + 1]);
  p.kFrom = std::min(from, to) * map.kPerRow;
  p.kTo = to * map.kPerRow;
}

inline void planPanel(PanelPlan& p, const PositionMap& map, int q0, int total, int K) {
  p.q0 = q0, p.length = std::min(kPanel, total - q0), p.segments = 0;
  p.rowsFit = p.halvesFit = p.length == kPanel;
  p.direct = p.length == kPanel && map.outColumn == 1 && map.outRow == map.columns;
  p.kFrom = 0, p.kTo = K;
  if (map.range) planRange(p, map, total);
  ptrdiff_t previous = -2;
  for (int i = 0; i < p.length; ++i) {
    int n, r, c;
    map.at(q0 + i, n, r, c);
    const ptrdiff_t s = n * map.sourceImage + r * map.sourceRow + c, d = n * map.outImage + r * map.outRow + c * map.outColumn;
    if (i == 0) p.out = d;
    else if (d != p.out + i) p.direct = false;
    if (i % (VL / 2) == 0) p.half[i / (VL / 2)] = s;
    else if (s != previous + 1) p.rowsFit = p.halvesFit = false;
    if (i % VL == VL / 2 && s != previous + 1) p.rowsFit = false;
    if (i % VL == 0 || s != previous + 1) p.segment[p.segments++] = {i / VL, i % VL, i % VL + 1, s - i % VL};
    else p.segment[p.segments - 1].to++;
    previous = s;
  }
}

// The panel's values for k in [k0, k1) as [k][kPanel]: each vector is put together from one to several runs of the planes.
inline void packPanel(const PanelPlan& p, const float* source, const int* off, int k0, int k1, float* to) {
  for (int s = 0, e = 0; s < p.segments; s = e) {
    const int v = p.segment[s].vector;
    for (e = s; e < p.segments && p.segment[e].vector == v;) ++e;
    float* o = to + v * VL;
    const float* a = source + p.segment[s].source;
    const Mask m = lanes(p.segment[s].from, p.segment[s].to);
    if (e - s == 1 && p.segment[s].to == VL) {
      for (int k = k0; k < k1; ++k, o += kPanel) store(o, load(a + off[k]));
    } else if (e - s == 1) {
      for (int k = k0; k < k1; ++k, o += kPanel) store(o, load(m, a + off[k]));
    } else if (e - s == 2) {
      const Mask m2 = lanes(p.segment[s + 1].from, p.segment[s + 1].to);
      const float* b = source + p.segment[s + 1].source;
      for (int k = k0; k < k1; ++k, o += kPanel) store(o, load(load(m, a + off[k]), m2, b + off[k]));
    } else {
      for (int k = k0; k < k1; ++k, o += kPanel) {
        V x = zero();
        for (int i = s; i < e; ++i) x = load(x, lanes(p.segment[i].from, p.segment[i].to), source + p.segment[i].source + off[k]);
        store(o, x);
      }
    }
  }
  for (int v = (p.length + VL - 1) / VL; v < kWidth; ++v)
    for (int k = k0; k < k1; ++k) store(to + v * VL + static_cast<ptrdiff_t>(k - k0) * kPanel, zero());
}

constexpr int kPanels = 8, kDepth = 256;

// Bias, and for panels that are no single run of the output the way from the tile to its places.
inline void finishPanel(const PanelPlan& p, const PositionMap& map, int M, const float* tile, float* out, const float* bias) {
  if (p.direct) {
    for (int m = 0; bias && m < M; ++m) {
      const V b = set1(bias[m]);
      float* d = out + p.out + m * map.outM;
      for (int v = 0; v < kWidth; ++v) store(d + v * VL, add(load(d + v * VL), b));
    }
    return;
  }
  ptrdiff_t d[kPanel];
  for (int j = 0; j < p.length; ++j) {
    int n, r, c;
    map.at(p.q0 + j, n, r, c);
    d[j] = n * map.outImage + r * map.outRow + c * map.outColumn;
  }
  const bool runs = map.outColumn == 1 && map.outRow == map.columns;
  for (int m = 0; m < M; ++m) {
    const float* t = tile + static_cast<size_t>(m) * kPanel;
    float* w = out + m * map.outM;
    const float b = bias ? bias[m] : 0.f;
    if (!runs) {
      if (bias) for (int j = 0; j < p.length; ++j) w[d[j]] = t[j] + b;
      else for (int j = 0; j < p.length; ++j) w[d[j]] = t[j];
      continue;
    }
    for (int j = 0, e = 0; j < p.length; j = e) {
      for (e = j + 1; e < p.length && d[e] == d[e - 1] + 1;) ++e;
      float* to = w + d[j];
      if (bias) for (int l = 0; l < e - j; ++l) to[l] = t[j + l] + b;
      else std::memcpy(to, t + j, static_cast<size_t>(e - j) * 4);
    }
  }
}

struct PositionsCall {
  int M, K;
  const float* A;        // packRows(M, K)
  const int* off;        // [K]
  PositionMap map;
  int images;
  const float* source;
  float* out;
  const float* bias;     // [M] or null
  bool mayReadInPlace;   // few rows: reading B straight from the planes beats packing it
};

inline void positions(const PositionsCall& c, LaneScratch& scratch) {
  const int total = c.images * c.map.rows * c.map.columns;
  const RowBlocks blocks(c.M);
  PanelPlan plan[kPanels];
  float* tiles = scratch.tile.get(static_cast<size_t>(kPanels) * c.M * kPanel);
  float* packed = scratch.panel.get(static_cast<size_t>(kDepth) * kPanel);
  for (int q0 = 0; q0 < total; q0 += kPanels * kPanel) {
    const int panels = std::min(kPanels, (total - q0 + kPanel - 1) / kPanel);
    for (int i = 0; i < panels; ++i) planPanel(plan[i], c.map, q0 + i * kPanel, total, c.K);
    for (int k = 0; k < std::max(c.K, 1); k += kDepth)
      for (int i = 0; i < panels; ++i) {
        const PanelPlan& p = plan[i];
        float* C = p.direct ? c.out + p.out : tiles + static_cast<size_t>(i) * c.M * kPanel;
        const ptrdiff_t ldc = p.direct ? c.map.outM : kPanel;
        const int k0 = std::max(k, p.kFrom), depth = std::min(k + kDepth, p.kTo) - k0;
        if (depth <= 0) {
          for (int m = 0; p.kFrom >= p.kTo && k == 0 && m < c.M; ++m) std::memset(C + m * ldc, 0, kPanel * 4);
          continue;
        }
        int mode = kPacked;
        const float* source[2 * kWidth] = {packed, packed, packed, packed};
        if (c.mayReadInPlace && p.rowsFit) {
          mode = kFromRows, source[0] = c.source + p.half[0], source[1] = c.source + p.half[2];
        } else if (c.mayReadInPlace && p.halvesFit) {
          mode = kFromHalves;
          for (int h = 0; h < 2 * kWidth; ++h) source[h] = c.source + p.half[h];
        } else {
          packPanel(p, c.source, c.off, k0, k0 + depth, packed);
        }
        for (int b = 0; b < blocks.count; ++b) {
          const int m0 = blocks.start(b), rows = blocks.size(b);
          gemmTileFor(mode, rows)(depth, c.A + static_cast<size_t>(m0) * c.K + static_cast<size_t>(k0) * rows, source, c.off + k0, C + m0 * ldc, ldc, k0 > p.kFrom);
        }
      }
    for (int i = 0; i < panels; ++i) finishPanel(plan[i], c.map, c.M, tiles + static_cast<size_t>(i) * c.M * kPanel, c.out, c.bias);
  }
}

// The smallest group of images that wastes under 5 % of its last group of 32 positions.
inline int imagesPerUnit(int positionsPerImage, int images) {
  for (int g = 1; g <= 16; ++g) {
    const int q = g * positionsPerImage;
    if (g >= images || ((q + 31) / 32 * 32) * 100 <= q * 105) return std::max(1, std::min(g, images));
  }
  return std::max(1, std::min(16, images));
}

// The same where kernel rows are left out: long enough rows of one output row for a panel to lie in.
inline int imagesPerTrimmedUnit(int positionsPerImage, int columns, int images) {
  return std::max(1, std::min(images, std::max(imagesPerUnit(positionsPerImage, images), (columns % 8 ? 96 : 32) / std::max(1, columns))));
}

}  // namespace crema::kernels::KNS
