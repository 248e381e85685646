// Inner product: the weights are streamed once; the panel is the batch, or outputs where the batch is small. Chains run
// over inputs (forward), outputs (gradient of the input), items (gradient of the weights).
namespace crema::kernels::KNS {

// Transposed weights are transposed back first: the three kernels below take [out][in] only.
inline const float* plainWeights(Context& context, const IpShape& s, const float* w) {
  if (!s.transposed) return w;
  float* turned = context.scratch().shared[kSharedInput].get(static_cast<size_t>(s.in) * s.out);
  constexpr int kBlock = 64;  // outputs a task: what it reads in a row of w is a few cache lines
  runUnless(static_cast<int64_t>(s.in) * s.out < (1 << 15), context, (s.out + kBlock - 1) / kBlock, [&](int t, int) {
    for (int i = 0; i < s.in; ++i)
      for (int o = t * kBlock; o < std::min(s.out, (t + 1) * kBlock); ++o)
        turned[static_cast<size_t>(o) * s.in + i] = w[static_cast<size_t>(i) * s.out + o];
  });
  return turned;
}

inline bool small(const IpShape& s) { return static_cast<int64_t>(s.n) * s.in * s.out < (1 << 20); }

constexpr int kStream = kRows / 3 * 3;  // rows of W per tile: triples

// [rows of W from o0][panel of items] += over inputs [i0, i0 + depth)
inline void streamRows(const float* w, int in, int o, int rows, int i0, int depth, const float* B, float* C) {
  const float* line[kRows];
  const int triples = rows / 3;
  const TapRun run{.step = in, .images = 1, .imageStep = 0, .rows = 1, .rowStep = 0, .columns = depth, .bImageStep = 0};
  for (int g = 0; g < triples; ++g) line[g] = w + static_cast<size_t>(o + 3 * g) * in + i0;
  if (triples) tapTileFor(3, false, triples)(line, run, B, C, i0 > 0);
  for (int m = triples * 3; m < rows; ++m) {
    line[0] = w + static_cast<size_t>(o + m) * in + i0;
    tapTileFor(1, true, 1)(line, run, B, C + static_cast<size_t>(m) * kPanel, i0 > 0);
  }
}

// w[o][i] of `rows` outputs from o0, inputs [i0, i0 + depth) -> [input][output], kPanel outputs.
inline void outputPanel(const IpShape& s, const float* w, int o0, int rows, int i0, int depth, float* panel) {
  // Rows are read in short pieces, which no processor foresees.
  if (!s.transposed) return toPanel<kDepth>(w + static_cast<size_t>(o0) * s.in + i0, s.in, rows, depth, panel);
  for (int i = 0; i < depth; ++i) {
    std::memcpy(panel + i * kPanel, w + static_cast<size_t>(i0 + i) * s.out + o0, static_cast<size_t>(rows) * 4);
    std::memset(panel + i * kPanel + rows, 0, static_cast<size_t>(kPanel - rows) * 4);
  }
}

// Up to kRows items: the panel is outputs, turned as they come from memory, where a panel of items would compute many times
// what is wanted. The chains are those of the other way.
inline void ipForwardFew(Context& context, const IpShape& s, const float* x, const float* w, const float* bias,
                         float* y) {
  auto& scratch = context.scratch();
  float* A = scratch.shared[kPackedWeights].get(static_cast<size_t>(s.n) * s.in + 1);
  packRows(A, s.n, s.in, [&](int m, int k) { return x[static_cast<size_t>(m) * s.in + k]; });
  runUnless(small(s), context, (s.out + kPanel - 1) / kPanel, [&](int t, int lane) {
    const int o0 = t * kPanel, rows = std::min(kPanel, s.out - o0);
    float* panel = scratch.lane[static_cast<size_t>(lane)].panel.get(static_cast<size_t>(kDepth) * kPanel);
    alignas(64) float c[kRows * kPanel] = {};
    for (int i0 = 0; i0 < s.in; i0 += kDepth) {
      const int depth = std::min(kDepth, s.in - i0);
      outputPanel(s, w, o0, rows, i0, depth, panel);
      const float* source[2] = {panel, nullptr};
      gemmTileFor(kPacked, s.n)(depth, A + static_cast<size_t>(i0) * s.n, source, nullptr, c, kPanel, i0 > 0, nullptr,
                                A, nullptr, nullptr);
    }
    for (int n = 0; n < s.n; ++n)
      for (int m = 0; m < rows; ++m)
        y[static_cast<size_t>(n) * s.out + o0 + m] = c[n * kPanel + m] + (bias ? bias[o0 + m] : 0.f);
  });
}

// One item. VL rows of the weights are turned in registers, as the chains are those of the other ways. Meanwhile what comes next
// of them is asked for: from memory to the second cache as memory is read fastest, kRun numbers of one row after those of the other, as rows
// that are read side by side have half of the speed of one that is read from end to end; and from there to the first cache shortly
// before it is needed, as VL rows that are a multiple of a page apart displace each other there (0133).
class OneItem {
 public:
  OneItem(const IpShape& s, const float* x, const float* w) : s_(s), x_(x), w_(w) {}

  // Outputs [o, o + VL), of which there are `rows`; `more`: the next VL follow.
  V outputs(int o, int rows, bool more) const {
    const float* from = w_ + static_cast<size_t>(o) * s_.in;
    V sum = zero(), chain = zero();
    for (int i = 0; i < s_.in; i += VL) {
      if (i % kDepth == 0) {
        if (i > 0) sum = i == kDepth ? chain : add(sum, chain);
        chain = zero();
      }
      ask(o, rows, i, more);
      const int columns = std::min(VL, s_.in - i);
      V turned[VL];
      if (rows == VL && columns == VL)
        for (int r = 0; r < VL; ++r) turned[r] = load(from + static_cast<ptrdiff_t>(r) * s_.in + i);
      else
        for (int r = 0; r < VL; ++r)
          turned[r] = r < rows ? load(lanes(0, columns), from + static_cast<ptrdiff_t>(r) * s_.in + i) : zero();
      transpose(turned);
      if (columns == VL)
        for (int k = 0; k < VL; ++k) chain = fma(set1(x_[i + k]), turned[k], chain);
      else
        for (int k = 0; k < columns; ++k) chain = fma(set1(x_[i + k]), turned[k], chain);
    }
    return s_.in > kDepth ? add(sum, chain) : chain;
  }

 private:
  static constexpr int kRun = 1024, kNear = 64, kMemory = 2;  // kMemory: for the second cache

  // A block's share of the next run of all rows: VL VL numbers of one row; and its own rows' next lines but a few.
  INL void ask(int o, int rows, int i, bool more) const {
    const float* near = w_ + static_cast<size_t>(o) * s_.in + i + kNear;
    if (i % kLine == 0 && i + kNear < s_.in)
      for (int r = 0; r < rows; ++r) __builtin_prefetch(near + static_cast<ptrdiff_t>(r) * s_.in);
    const int block = i % kRun / VL, run = i / kRun * kRun + kRun, blocksOfRow = kRun / (VL * VL);
    const int row = block / blocksOfRow;
    const bool here = run < s_.in;
    if ((!here && !more) || row >= rows) return;
    const float* next = w_ + static_cast<size_t>(here ? o + row : o + VL + row) * s_.in + (here ? run : 0) +
                        block % blocksOfRow * VL * VL;
    for (int k = 0; k < VL * VL; k += kLine) __builtin_prefetch(next + k, 0, kMemory);
  }

  const IpShape& s_;
  const float *x_, *w_;
};

inline void ipForwardOne(Context& context, const IpShape& s, const float* x, const float* w, const float* bias,
                         float* y) {
  const OneItem one(s, x, w);
  const int groups = (s.out + VL - 1) / VL, parts = std::min(groups, 4 * context.pool().size());
  runUnless(int64_t{s.in} * s.out < (1 << 16), context, parts, [&](int t, int) {
    for (int g = groups * t / parts, last = groups * (t + 1) / parts; g < last; ++g) {
      const int o = g * VL, rows = std::min(VL, s.out - o);
      const Mask here = lanes(0, rows);
      const V sums = one.outputs(o, rows, g + 1 < groups);
      store(here, y + o, add(sums, bias ? load(here, bias + o) : zero()));
    }
  });
}

inline void ipForward(Context& context, const IpShape& s, const float* x, const float* weights, const float* bias,
                      float* y) {
  if (s.n == 0) return;
  if (s.n == 1 && !s.transposed) return ipForwardOne(context, s, x, weights, bias, y);
  if (s.n <= kRows) return ipForwardFew(context, s, x, weights, bias, y);
  const float* w = plainWeights(context, s, weights);
  auto& scratch = context.scratch();
  const int panels = (s.n + kPanel - 1) / kPanel, pieces = (s.in + kDepth - 1) / kDepth;
  float* xt = scratch.shared[kPackedWeights].get(static_cast<size_t>(panels) * s.in * kPanel);  // [panel][input][item]
  runUnless(small(s), context, panels * pieces, [&](int t, int) {
    const int p = t / pieces, i0 = t % pieces * kDepth;
    toPanel(x + static_cast<size_t>(p) * kPanel * s.in + i0, s.in, std::min(kPanel, s.n - p * kPanel),
            std::min(kDepth, s.in - i0), xt + (static_cast<size_t>(p) * s.in + i0) * kPanel);
  });
  constexpr int kBlock = 4 * kStream;
  runUnless(small(s), context, (s.out + kBlock - 1) / kBlock, [&](int t, int lane) {
    const int o0 = t * kBlock, rows = std::min(kBlock, s.out - o0);
    float* c = scratch.lane[static_cast<size_t>(lane)].tile.get(static_cast<size_t>(panels) * kBlock * kPanel);
    if (s.in == 0) std::memset(c, 0, static_cast<size_t>(panels) * kBlock * kPanel * 4);
    for (int i0 = 0; i0 < s.in; i0 += kDepth)
      for (int m = 0; m < rows; m += kStream)
        for (int p = 0; p < panels; ++p)
          streamRows(w, s.in, o0 + m, std::min(kStream, rows - m), i0, std::min(kDepth, s.in - i0),
                     xt + (static_cast<size_t>(p) * s.in + i0) * kPanel,
                     c + (static_cast<size_t>(p) * kBlock + m) * kPanel);
    for (int n = 0; n < s.n; ++n)
      for (int m = 0; m < rows; ++m)
        y[static_cast<size_t>(n) * s.out + o0 + m] =
            c[(static_cast<size_t>(n / kPanel) * kBlock + m) * kPanel + n % kPanel] + (bias ? bias[o0 + m] : 0.f);
  });
}

inline void ipBackwardData(Context& context, const IpShape& s, const float* dy, const float* weights, float* dx) {
  if (s.n == 0 || s.in == 0) return;
  const float* w = plainWeights(context, s, weights);
  auto& scratch = context.scratch();
  float* A = scratch.shared[kPackedWeights].get(static_cast<size_t>(s.n) * s.out + 1);
  packRows(A, s.n, s.out, [&](int m, int k) { return dy[static_cast<size_t>(m) * s.out + k]; });
  std::vector<int> off(static_cast<size_t>(s.out));
  for (int k = 0; k < s.out; ++k) off[static_cast<size_t>(k)] = k * s.in;
  constexpr int kBlock = 8 * 32;
  const int tasks = (s.in + kBlock - 1) / kBlock;
  runUnless(small(s), context, tasks, [&](int t, int lane) {
    const int i0 = t * kBlock, size = std::min(kBlock, s.in - i0);
    const auto plan = planPanels({.rows = 1, .columns = size, .images = 1}, s.out);
    positions({.M = s.n,
               .K = s.out,
               .A = A,
               .off = off.data(),
               .outM = s.in,
               .plan = plan,
               .source = w + i0,
               .out = dx + i0,
               .bias = nullptr,
               .mayReadInPlace = false},
              scratch.lane[static_cast<size_t>(lane)]);
  });
}

inline void addTile(const float* tile, int rows, int length, float* to, ptrdiff_t ld, bool accumulate) {
  for (int m = 0; m < rows; ++m) {
    float* d = to + m * ld;
    const float* t = tile + static_cast<size_t>(m) * kPanel;
    if (accumulate)
      for (int i = 0; i < length; ++i) d[i] += t[i];
    else
      for (int i = 0; i < length; ++i) d[i] = 0.f + t[i];  // the zero that adding to zeros would give
  }
}

constexpr int kRunPanels = 16;

// The rows [n][width] of all ranks, one after the other.
inline std::vector<const float*> rowsOfRanks(const float* first, int ranks, int64_t apart, int n, int width) {
  std::vector<const float*> all;
  for (int r = 0; r < ranks; ++r)
    for (int i = 0; i < n; ++i) all.push_back(first + r * apart + static_cast<ptrdiff_t>(i) * width);
  return all;
}

// Rows of `width` numbers -> [panel][row][kPanel], zeros behind the last number.
inline void packColumns(Context& context, bool small, const std::vector<const float*>& rows, int width, float* packed) {
  runUnless(small, context, (width + kPanel - 1) / kPanel, [&](int p, int) {
    const int length = std::min(kPanel, width - p * kPanel);
    float* d = packed + static_cast<size_t>(p) * rows.size() * kPanel;
    for (size_t k = 0; k < rows.size(); ++k, d += kPanel) {
      std::memcpy(d, rows[k] + p * kPanel, static_cast<size_t>(length) * 4);
      if (length < kPanel) std::memset(d + length, 0, static_cast<size_t>(kPanel - length) * 4);
    }
  });
}

// Calls use(lane, tile, row, rows, column, columns) for each tile of the sum of all ranks' gradients, which has kPanel numbers a
// row. On one lane those of a block of rows and kRunPanels panels one after the other, then those of the next of a few blocks,
// so that the panels are read from a cache.
template <class Use>
void weightTiles(Context& context, const IpShape& s, const IpFactors<float>& f, const Use& use) {
  auto& scratch = context.scratch();
  // With transposed weights the roles of x and dy are exchanged: dw[i][o] = sum_n x[n][i] dy[n][o].
  const int rows = s.transposed ? s.in : s.out, columns = s.transposed ? s.out : s.in;
  if (rows == 0 || columns == 0) return;
  int ranks = 0, slots = 0;
  for (const SumStep& step : f.sum) ranks = std::max(ranks, step.rank + 1), slots = std::max(slots, step.slot + 1);
  const auto left = rowsOfRanks(s.transposed ? f.x : f.dy, ranks, f.apart, s.n, rows);
  const int K = ranks * s.n, panels = (columns + kPanel - 1) / kPanel;
  float* packed = scratch.shared[kSharedInput].get(static_cast<size_t>(panels) * K * kPanel);
  float* A = scratch.shared[kPackedWeights].get(static_cast<size_t>(K) * rows);
  packRows(A, rows, K, [&](int m, int k) { return left[static_cast<size_t>(k)][m]; });
  packColumns(context, small(s), rowsOfRanks(s.transposed ? f.dy : f.x, ranks, f.apart, s.n, columns), columns, packed);
  const RowBlocks blocks(rows);
  const int group = std::clamp(blocks.count / (4 * context.pool().size()), 1, 4);
  const auto run = [&](int b, int p0, int lane) {
    constexpr size_t kTile = size_t{kRows} * kPanel;
    const int m0 = blocks.start(b), count = blocks.size(b);
    float* tiles = scratch.lane[static_cast<size_t>(lane)].panel.get(static_cast<size_t>(slots) * kTile);
    for (int p = p0; p < std::min(panels, p0 + kRunPanels); ++p) {
      for (const auto [slot, rank] : f.sum) {
        float* tile = tiles + static_cast<size_t>(slot) * kTile;
        if (rank < 0) {
          for (size_t i = 0; i < static_cast<size_t>(count) * kPanel; ++i) tile[i] += tile[kTile + i];
          continue;
        }
        const size_t first = static_cast<size_t>(rank) * s.n;
        const float* source[2] = {packed + (static_cast<size_t>(p) * K + first) * kPanel, nullptr};
        gemmTileFor(kPacked, count)(s.n, A + static_cast<size_t>(m0) * K + first * count, source, nullptr, tile, kPanel,
                                    false, nullptr, A, nullptr, nullptr);
      }
      use(lane, tiles, m0, count, p * kPanel, std::min(kPanel, columns - p * kPanel));
    }
  };
  runUnless(small(s), context, (blocks.count + group - 1) / group, [&](int t, int lane) {
    for (int p0 = 0; p0 < panels; p0 += kRunPanels)
      for (int b = t * group; b < std::min(blocks.count, (t + 1) * group); ++b) run(b, p0, lane);
  });
}

inline void ipBackwardWeights(Context& context, const IpShape& s, const float* x, const float* dy, float* dw,
                              bool accumulate) {
  const ptrdiff_t ld = s.transposed ? s.out : s.in;
  weightTiles(context, s, {x, dy}, [&](int, const float* tile, int row, int rows, int column, int columns) {
    addTile(tile, rows, columns, dw + row * ld + column, ld, accumulate);
  });
}

// One sum in double per output; limited by memory, and a fraction of a percent of a step.
inline void ipBackwardBias(Context& context, const IpShape& s, const float* dy, float* dbias, bool accumulate) {
  kFloatReference.ipBackwardBias(context, s, dy, dbias, accumulate);
}

}  // namespace crema::kernels::KNS
