// Panels of output positions: where each reads and writes, and how its inputs are gathered.
namespace crema::kernels::KNS {

// Where position q reads and where it writes. With `range`, positions go (row, image, column) and a panel leaves out
// kernel rows that lie in padding entirely: part of the mathematics (sums over aligned groups of 32 positions), the
// same on every instruction set.
struct PositionMap {
  int rows, columns, images;
  ptrdiff_t sourceImage = 0, sourceRow = 0, outImage = 0, outRow = 0, outColumn = 1;
  const int* range = nullptr;  // per output row: first and last + 1 kernel row that overlaps the image
  int kPerRow = 0;             // k per kernel row
  int total() const { return images * rows * columns; }
};

// Iterates over the rows of positions in order.
struct Cursor {
  const PositionMap& map;
  int n, r, c;
  Cursor(const PositionMap& m, int q) : map(m), c(q % m.columns) {
    if (m.range)
      n = q / m.columns % m.images, r = q / (m.columns * m.images);
    else
      r = q / m.columns % m.rows, n = q / (m.columns * m.rows);
  }
  void nextRow() {
    c = 0;
    if (map.range) {
      if (++n == map.images) n = 0, ++r;
    } else if (++r == map.rows) {
      r = 0, ++n;
    }
  }
  ptrdiff_t source() const { return n * map.sourceImage + r * map.sourceRow + c; }
  ptrdiff_t out() const { return n * map.outImage + r * map.outRow + c * map.outColumn; }
};

struct Segment {  // lanes [from, to) of a vector read contiguous memory; source: offset of lane 0
  int vector, from, to;
  ptrdiff_t source;
};
struct Run {  // positions [from, from + length) of the panel go to contiguous memory from `to` on
  int from, length;
  ptrdiff_t to;
};
struct PanelPlan {
  PanelPlan() {}  // not cleared, as most panels use the first of each array
  int segments = 0, runs = 0;
  Segment segment[kPanel];
  Run run[kPanel];
  ptrdiff_t half[2 * kWidth] = {};  // offset of each half vector, where it reads contiguous memory
  int length, kFrom, kTo;
  bool rowsFit, halvesFit;  // whether all vectors, or half vectors, read contiguous memory
  bool direct() const { return length == kPanel && runs == 1; }
};

inline void planRange(PanelPlan& p, const PositionMap& map, int q0) {
  const int group = q0 / 32 * 32, last = std::min(group + 32, map.total()) - 1, per = map.images * map.columns;
  int from = 1 << 20, to = 0;
  for (int r = group / per; r <= last / per; ++r)
    from = std::min(from, map.range[2 * r]), to = std::max(to, map.range[2 * r + 1]);
  p.kFrom = std::min(from, to) * map.kPerRow;
  p.kTo = to * map.kPerRow;
}

// Positions [from, from + length) read contiguous memory from `source` on.
inline void planStretch(PanelPlan& p, int from, int length, ptrdiff_t source) {
  constexpr int kHalf = VL / 2;
  const int to = from + length;
  if (from % kHalf) p.rowsFit = p.halvesFit = false;
  if (from % VL == kHalf) p.rowsFit = false;
  for (int h = (from + kHalf - 1) / kHalf; h * kHalf < to; ++h) p.half[h] = source + h * kHalf - from;
  for (int i = from; i < to; i += VL - i % VL)
    p.segment[p.segments++] = {i / VL, i % VL, std::min(VL, i % VL + to - i), source + i - from - i % VL};
}

inline void planPanel(PanelPlan& p, const PositionMap& map, int q0, int K) {
  p.length = std::min(kPanel, map.total() - q0);
  p.rowsFit = p.halvesFit = p.length == kPanel;
  p.kFrom = 0, p.kTo = K;
  if (map.range) planRange(p, map, q0);
  Cursor at(map, q0);
  int start = 0;  // of a stretch, which reads from `source` on
  ptrdiff_t source = at.source();
  for (int i = 0, n = 0; i < p.length; i += n, at.nextRow()) {
    n = std::min(map.columns - at.c, p.length - i);
    const ptrdiff_t s = at.source(), d = at.out();
    if (s != source + i - start) planStretch(p, start, i - start, source), start = i, source = s;
    if (map.outColumn != 1)
      for (int j = 0; j < n; ++j) p.run[p.runs++] = {i + j, 1, d + j * map.outColumn};
    else if (p.runs && d == p.run[p.runs - 1].to + p.run[p.runs - 1].length)
      p.run[p.runs - 1].length += n;
    else
      p.run[p.runs++] = {i, n, d};
  }
  planStretch(p, start, p.length - start, source);
}

// One plan serves every unit of images of the same size: made once per call, some 50 cycles a panel.
inline std::vector<PanelPlan> planPanels(const PositionMap& map, int K) {
  std::vector<PanelPlan> plans(static_cast<size_t>((map.total() + kPanel - 1) / kPanel));
  for (size_t i = 0; i < plans.size(); ++i) planPanel(plans[i], map, static_cast<int>(i) * kPanel, K);
  return plans;
}

// One vector of a panel for k in [k0, k1), assembled from S runs of the planes.
template <int S>
INL void packVector(const Segment* s, const float* source, const int* off, int k0, int k1, float* to) {
  Mask mask[S];
  const float* from[S];
#pragma GCC unroll 4
  for (int i = 0; i < S; ++i) mask[i] = lanes(s[i].from, s[i].to), from[i] = source + s[i].source;
  for (int k = k0; k < k1; ++k, to += kPanel) {
    V x = load(mask[0], from[0] + off[k]);
#pragma GCC unroll 4
    for (int i = 1; i < S; ++i) x = load(x, mask[i], from[i] + off[k]);
    store(to, x);
  }
}

// The panel's values for k in [k0, k1) as [k][kPanel].
inline void packPanel(const PanelPlan& p, const float* source, const int* off, int k0, int k1, float* to) {
  for (int s = 0, e = 0; s < p.segments; s = e) {
    const Segment* first = p.segment + s;
    const int v = first->vector;
    for (e = s; e < p.segments && p.segment[e].vector == v;) ++e;
    float* o = to + v * VL;
    if (e - s == 1 && first->to == VL) {
      const float* a = source + first->source;
      for (int k = k0; k < k1; ++k, o += kPanel) store(o, load(a + off[k]));
    } else if (e - s == 1) {
      packVector<1>(first, source, off, k0, k1, o);
    } else if (e - s == 2) {
      packVector<2>(first, source, off, k0, k1, o);
    } else if (e - s == 3) {
      packVector<3>(first, source, off, k0, k1, o);
    } else if (e - s == 4) {
      packVector<4>(first, source, off, k0, k1, o);
    } else {
      for (int k = k0; k < k1; ++k, o += kPanel) {
        V x = zero();
        for (int i = s; i < e; ++i)
          x = load(x, lanes(p.segment[i].from, p.segment[i].to), source + p.segment[i].source + off[k]);
        store(o, x);
      }
    }
  }
  for (int v = (p.length + VL - 1) / VL; v < kWidth; ++v)
    for (int k = k0; k < k1; ++k) store(to + v * VL + static_cast<ptrdiff_t>(k - k0) * kPanel, zero());
}

}  // namespace crema::kernels::KNS
