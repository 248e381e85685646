// One driver for convolution forward, the gradient of its input, and that of the inner product's input:
//   out[m][q] = sum_k A[m][k] * source[off[k] + pos(q)],  q = (image, row, column)
// Blocks: 8 panels of positions, rows in blocks of the tile: these do not affect the bits. Pieces of 128 k do: they are
// the chains whose sums are added, and part of the mathematics.
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

// Iterates over the positions in order.
struct Cursor {
  const PositionMap& map;
  int n, r, c;
  Cursor(const PositionMap& m, int q) : map(m), c(q % m.columns) {
    if (m.range)
      n = q / m.columns % m.images, r = q / (m.columns * m.images);
    else
      r = q / m.columns % m.rows, n = q / (m.columns * m.rows);
  }
  void next() {
    if (++c < map.columns) return;
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
  int segments = 0, runs = 0;
  Segment segment[kPanel];
  Run run[kPanel];
  ptrdiff_t half[2 * kWidth];  // offset of each half vector, where it reads contiguous memory
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

inline void planPanel(PanelPlan& p, const PositionMap& map, int q0, int K) {
  p.length = std::min(kPanel, map.total() - q0);
  p.rowsFit = p.halvesFit = p.length == kPanel;
  p.kFrom = 0, p.kTo = K;
  if (map.range) planRange(p, map, q0);
  Cursor at(map, q0);
  ptrdiff_t previous = 0, previousOut = 0;
  for (int i = 0; i < p.length; ++i, at.next()) {
    const ptrdiff_t s = at.source(), d = at.out();
    const bool follows = i > 0 && s == previous + 1;
    if (i % (VL / 2) == 0)
      p.half[i / (VL / 2)] = s;
    else if (!follows)
      p.rowsFit = p.halvesFit = false;
    if (i % VL == VL / 2 && !follows) p.rowsFit = false;
    if (i % VL == 0 || !follows)
      p.segment[p.segments++] = {i / VL, i % VL, i % VL + 1, s - i % VL};
    else
      p.segment[p.segments - 1].to++;
    if (i > 0 && d == previousOut + 1)
      p.run[p.runs - 1].length++;
    else
      p.run[p.runs++] = {i, 1, d};
    previous = s, previousOut = d;
  }
}

// One plan serves every unit of images of the same size: made once per call, some 200 cycles a panel.
inline std::vector<PanelPlan> planPanels(const PositionMap& map, int K) {
  std::vector<PanelPlan> plans(static_cast<size_t>((map.total() + kPanel - 1) / kPanel));
  for (size_t i = 0; i < plans.size(); ++i) planPanel(plans[i], map, static_cast<int>(i) * kPanel, K);
  return plans;
}

// The panel's values for k in [k0, k1) as [k][kPanel]: each vector is assembled from one or more runs of the planes.
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
        for (int i = s; i < e; ++i)
          x = load(x, lanes(p.segment[i].from, p.segment[i].to), source + p.segment[i].source + off[k]);
        store(o, x);
      }
    }
  }
  for (int v = (p.length + VL - 1) / VL; v < kWidth; ++v)
    for (int k = k0; k < k1; ++k) store(to + v * VL + static_cast<ptrdiff_t>(k - k0) * kPanel, zero());
}

constexpr int kPanels = 8, kDepth = 128;

struct PositionsCall {
  int M, K;
  const float* A;  // packRows(M, K)
  const int* off;  // [K]
  ptrdiff_t outM;  // distance of adjacent m in the output
  const std::vector<PanelPlan>& plan;
  const float* source;
  float* out;
  const float* bias;                      // [M] or null: the initial value of the chains
  bool mayReadInPlace;                    // few rows: reading B straight from the planes beats packing it
  const Epilogue<float>* then = nullptr;  // steps on the outputs
  int channel = 0;                        // of these: the number of row 0,
  ptrdiff_t outStart = 0;                 // and where `out` lies in the blob
};

// The part of a call that one task computes: panels [panel, lastPanel), row blocks [block, lastBlock).
struct Share {
  size_t panel, lastPanel;
  int block, lastBlock;
};

// Part `part` of `parts`: of the panels where there are enough, else of the rows. Neither affects the bits.
inline Share shareOf(const PositionsCall& c, const RowBlocks& blocks, int part, int parts) {
  const size_t groups = (c.plan.size() + kPanels - 1) / kPanels, k = static_cast<size_t>(parts);
  if (groups < k) return {0, c.plan.size(), blocks.count * part / parts, blocks.count * (part + 1) / parts};
  const auto panel = [&](int p) { return std::min(groups * static_cast<size_t>(p) / k * kPanels, c.plan.size()); };
  return {panel(part), panel(part + 1), 0, blocks.count};
}

inline void fillRows(int from, int to, const float* bias, float* C, ptrdiff_t ldc) {
  for (int m = from; m < to; ++m)
    for (int v = 0; v < kWidth; ++v) store(C + m * ldc + v * VL, bias ? set1(bias[m]) : zero());
}

// What a step adds to row m of a panel.
inline const float* othersOf(const PositionsCall& c, const Step<float>& step, const PanelPlan& p, int m,
                             float* gathered) {
  if (step.kind != Step<float>::kAdd) return nullptr;
  const float* from = step.other + c.outStart + m * c.outM;
  if (p.direct()) return from + p.run[0].to;
  for (int j = 0; j < p.runs; ++j) {
    const Run& run = p.run[j];
    for (int i = 0; i < run.length; i += VL)
      store(lanes(0, std::min(VL, run.length - i)), gathered + run.from + i,
            load(lanes(0, std::min(VL, run.length - i)), from + run.to + i));
  }
  return gathered;
}

// The steps on rows [from, to) of a panel in C, of which each holds kPanel numbers.
inline void finishRows(const PositionsCall& c, const PanelPlan& p, int from, int to, float* C, ptrdiff_t ldc) {
  alignas(64) float gathered[kPanel] = {};
  for (int m = from; m < to; ++m) {
    V y[kWidth];
    for (int v = 0; v < kWidth; ++v) y[v] = load(C + m * ldc + v * VL);
    for (const Step<float>& step : *c.then) stepRow(step, c.channel + m, othersOf(c, step, p, m, gathered), y);
    for (int v = 0; v < kWidth; ++v) store(C + m * ldc + v * VL, y[v]);
  }
}

// Asks for the lines of rows [from, to) that are written next and of what a step adds to them: they lie as far apart as the
// planes of the output, which no processor foresees.
INL void prefetchRows(const PositionsCall& c, const PanelPlan& p, int from, int to, bool outputs, bool others) {
  const ptrdiff_t at = p.run[0].to;
  for (int m = from; m < to; ++m) {
    if (outputs)
      for (int i = 0; i < kPanel; i += 16) __builtin_prefetch(c.out + at + m * c.outM + i, 1);
    if (!others) continue;
    for (const Step<float>& step : *c.then)
      for (int i = 0; step.kind == Step<float>::kAdd && i < kPanel; i += 16)
        __builtin_prefetch(step.other + c.outStart + at + m * c.outM + i);
  }
}

// The rows of one panel for k in [k, k + kDepth), as far as the panel has them.
inline void computePanel(const PositionsCall& c, const RowBlocks& blocks, const Share& share, const PanelPlan& p, int k,
                         float* packed, float* C, ptrdiff_t ldc) {
  const int k0 = std::max(k, p.kFrom), depth = std::min(k + kDepth, p.kTo) - k0;
  if (depth <= 0) {
    if (p.kFrom < p.kTo || k > 0) return;
    const int from = blocks.start(share.block), to = blocks.start(share.lastBlock);
    fillRows(from, to, c.bias, C, ldc);
    if (c.then) finishRows(c, p, from, to, C, ldc);
    return;
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
  const bool first = k0 == p.kFrom, last = k0 + depth == p.kTo;
  for (int b = share.block; b < share.lastBlock; ++b) {
    const int m0 = blocks.start(b), rows = blocks.size(b);
    if (p.direct() && b + 1 < share.lastBlock)
      prefetchRows(c, p, m0 + rows, m0 + rows + blocks.size(b + 1), first, last && c.then);
    const float* A = c.A + static_cast<size_t>(m0) * c.K + static_cast<size_t>(k0) * rows;
    gemmTileFor(mode, rows)(depth, A, source, c.off + k0, C + m0 * ldc, ldc, !first, c.bias ? c.bias + m0 : nullptr);
    if (last && c.then) finishRows(c, p, m0, m0 + rows, C, ldc);
  }
}

// Writes the tile [M][kPanel] to the output where the panel's positions are not contiguous.
inline void scatterPanel(const PositionsCall& c, const PanelPlan& p, int from, int to, const float* tile) {
  const bool singles = p.runs == p.length;
  tile += from * kPanel;
  for (int m = from; m < to; ++m, tile += kPanel) {
    float* out = c.out + m * c.outM;
    if (singles) {
      for (int j = 0; j < p.length; ++j) out[p.run[j].to] = tile[j];
      continue;
    }
    for (int j = 0; j < p.runs; ++j) {
      const Run& run = p.run[j];
      for (int i = 0; i < run.length; i += VL)
        store(lanes(0, std::min(VL, run.length - i)), out + run.to + i, load(tile + run.from + i));
    }
  }
}

inline void positions(const PositionsCall& c, LaneScratch& scratch, int part = 0, int parts = 1) {
  if (c.M == 0) return;
  const RowBlocks blocks(c.M);
  const Share share = shareOf(c, blocks, part, parts);
  if (share.block == share.lastBlock) return;
  const size_t tileSize = static_cast<size_t>(c.M) * kPanel;
  float* tiles = scratch.tile.get(kPanels * tileSize);
  float* packed = scratch.panel.get(static_cast<size_t>(kDepth) * kPanel);
  for (size_t first = share.panel; first < share.lastPanel; first += kPanels) {
    const size_t panels = std::min<size_t>(kPanels, share.lastPanel - first);
    for (int k = 0; k < std::max(c.K, 1); k += kDepth)
      for (size_t i = 0; i < panels; ++i) {
        const PanelPlan& p = c.plan[first + i];
        if (p.direct())
          computePanel(c, blocks, share, p, k, packed, c.out + p.run[0].to, c.outM);
        else
          computePanel(c, blocks, share, p, k, packed, tiles + i * tileSize, kPanel);
      }
    const int from = blocks.start(share.block), to = blocks.start(share.lastBlock);
    for (size_t i = 0; i < panels; ++i) {
      const PanelPlan& p = c.plan[first + i];
      if (!p.direct()) scatterPanel(c, p, from, to, tiles + i * tileSize);
    }
  }
}

// Into how many parts a unit of images is cut: where there are few units the threads share each.
inline int partsOfUnit(Context& context, int units) {
  const int threads = context.pool().size();
  return units % threads == 0 || units >= 4 * threads ? 1 : (2 * threads + units - 1) / units;
}

// The smallest group of images that wastes under 5 % of its last group of 32 positions.
inline int imagesPerUnit(int positionsPerImage, int images) {
  for (int g = 1; g <= 16; ++g) {
    const int q = g * positionsPerImage;
    if (g >= images || ((q + 31) / 32 * 32) * 100 <= q * 105) return std::max(1, std::min(g, images));
  }
  return std::max(1, std::min(16, images));
}

// The same where kernel rows are left out: enough images that one output row over all of them fills panels.
inline int imagesPerTrimmedUnit(int positionsPerImage, int columns, int images) {
  return std::max(1, std::min(images, std::max(imagesPerUnit(positionsPerImage, images),
                                               (columns % 8 ? 96 : 32) / std::max(1, columns))));
}

}  // namespace crema::kernels::KNS
