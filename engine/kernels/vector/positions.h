// One driver for convolution forward, the gradient of its input, and that of the inner product's input:
//   out[m][q] = sum_k A[m][k] * source[off[k] + pos(q)],  q = (image, row, column)
// Pieces of 128 k are the chains whose sums are added, and part of the mathematics. Blocks do not affect the bits: 8
// panels of positions are packed for 2 pieces, which the second cache holds; one piece of a panel meets some blocks of rows
// at a time, which the first cache holds together, and so are the outputs of these rows for both pieces.
namespace crema::kernels::KNS {

// The part of a call that one task computes: panels [panel, lastPanel), row blocks [block, lastBlock).
struct Share {
  size_t panel, lastPanel;
  int block, lastBlock;
};

// Part `part` of `parts`: of the panels where there are enough, else of the rows. Neither affects the bits.
inline Share shareOf(const PositionsCall& c, const RowBlocks& blocks, int part, int parts) {
  const size_t all = c.plan.size(), k = static_cast<size_t>(parts), p = static_cast<size_t>(part);
  if (all < k * kPanels / 2) return {0, all, blocks.count * part / parts, blocks.count * (part + 1) / parts};
  return {all * p / k, all * (p + 1) / k, 0, blocks.count};
}

inline void fillRows(int from, int to, const float* bias, float* C, ptrdiff_t ldc) {
  for (int m = from; m < to; ++m)
    for (int v = 0; v < kWidth; ++v) store(C + m * ldc + v * VL, bias ? set1(bias[m]) : zero());
}

// The steps on M rows from m on of a panel in C, of which each holds kPanel numbers.
template <int M>
void finishSome(const PositionsCall& c, const PanelPlan& p, int m, float* C, ptrdiff_t ldc) {
  alignas(64) float gathered[M][kPanel] = {};
  V y[M][kWidth];
  for (int r = 0; r < M; ++r)
    for (int v = 0; v < kWidth; ++v) y[r][v] = load(C + (m + r) * ldc + v * VL);
  for (const Step<float>& step : *c.then) {
    for (int r = 0; r < M && step.kind == Step<float>::kAdd; ++r)
      for (int j = 0; j < p.runs; ++j)
        copyRow(step.other + c.outStart + (m + r) * c.outM + p.run[j].to, p.run[j].length, gathered[r] + p.run[j].from);
    stepRows<M>(step, c.channel + m, gathered[0], kPanel, y);
  }
  for (int r = 0; r < M; ++r)
    for (int v = 0; v < kWidth; ++v) store(C + (m + r) * ldc + v * VL, y[r][v]);
}

inline void finishRows(const PositionsCall& c, const PanelPlan& p, int from, int to, float* C, ptrdiff_t ldc) {
  int m = from;
  for (; m + 4 <= to; m += 4) finishSome<4>(c, p, m, C, ldc);
  for (; m < to; ++m) finishSome<1>(c, p, m, C, ldc);
}

constexpr int kFewRuns = 4;  // in memory, of a panel

// Lists the lines of rows [from, to) of a panel that are written and added next: they lie as far apart as the planes of
// the output, which no processor foresees.
INL void listRows(const PositionsCall& c, const PanelPlan& p, int from, int to, bool outputs, bool others,
                  LineList& list) {
  const auto ask = [&](ptrdiff_t at, int lines) __attribute__((always_inline)) {
    at += from * c.outM;
    if (outputs) list.add(c.out + at, to - from, c.outM, lines);
    if (others) list.add(c.adds->other + c.outStart + at, to - from, c.outM, lines);
  };
  if (p.direct()) return ask(p.run[0].to, kPanel / kLine);
  for (int j = 0; p.runs <= kFewRuns && j < p.runs; ++j)
    ask(p.run[j].to, 1), ask(p.run[j].to + std::min(kLine, p.run[j].length - 1), 1);
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
    for (int j = 0; j < p.runs; ++j) copyRow(tile + p.run[j].from, p.run[j].length, out + p.run[j].to);
  }
}

// Rows [m0, m0 + rows), one block, of a panel for a piece of k. The chain of the first 128 k begins with the bias; where the panel
// leaves these out, it is what that chain gives, and the others are added to it as they are where nothing is left out.
inline void computeBlock(const PositionsCall& c, const PanelPlan& p, const Piece& piece, int k, int m0, int rows,
                         float* C, ptrdiff_t ldc, LineList& list) {
  if (piece.depth > 0) {
    const bool biasAlone = c.bias && p.kFrom >= kDepth && piece.k0 == p.kFrom;
    if (biasAlone) fillRows(m0, m0 + rows, c.bias, C, ldc);
    const bool end = piece.k0 + piece.depth == p.kTo, inTile = c.then && end && (p.direct() || !c.adds);
    const Finish finish = {.first = inTile ? c.then->data() : nullptr,
                           .last = inTile ? c.then->data() + c.then->size() : nullptr,
                           .channel = c.channel + m0,
                           .at = c.outStart + m0 * c.outM + p.run[0].to,
                           .rowStep = c.outM,
                           .streams = end && c.streams && p.direct() && p.run[0].to % kLine == 0};
    const float* A = c.A + static_cast<size_t>(m0) * c.K + static_cast<size_t>(piece.k0) * rows;
    gemmTileFor(list.modeFor(piece.mode, piece.depth, A), rows)(
        piece.depth, A, piece.source, c.off + piece.k0, C + m0 * ldc, ldc, biasAlone || piece.k0 > p.kFrom,
        c.bias ? c.bias + m0 : nullptr, A + static_cast<size_t>(rows) * c.K,
        inTile || finish.streams ? &finish : nullptr, list.line);
    if (c.then && end && !inTile) finishRows(c, p, m0, m0 + rows, C, ldc);
    if (end && !p.direct()) scatterPanel(c, p, m0, m0 + rows, C);
  } else if (p.kFrom >= p.kTo && k == 0) {
    fillRows(m0, m0 + rows, c.bias, C, ldc);
    if (c.then) finishRows(c, p, m0, m0 + rows, C, ldc);
    if (!p.direct()) scatterPanel(c, p, m0, m0 + rows, C);
  }
}

// Blocks of rows [first, last), of which the call has those before `end`.
struct SomeBlocks {
  int first, last, end;
};

inline void computeRows(const PositionsCall& c, const PanelPlan* plan, size_t panels, const PackedPanels& packed, int k,
                        const RowBlocks& blocks, const SomeBlocks& some, float* tiles, Ahead& ahead) {
  LineList list;
  for (size_t i = 0; i < panels; ++i) {
    const PanelPlan& p = plan[i];
    float* C = p.direct() ? c.out + p.run[0].to : tiles + i * static_cast<size_t>(c.M) * kPanel;
    for (int j = 0; j < kPieces && (j == 0 || k + j * kDepth < c.K); ++j)
      for (int b = some.first; b < some.last; ++b) {
        list.count = 0;
        if (j == 0) {  // the rows that are written next
          const PanelPlan& next = i + 1 < panels ? plan[i + 1] : plan[0];
          const int nextBlock = i + 1 < panels ? b : b + some.last - some.first;
          const bool last = k + kPieces * kDepth >= c.K;
          if (nextBlock < some.end && (next.direct() || last))
            listRows(c, next, blocks.start(nextBlock), blocks.start(nextBlock + 1), !c.streams || !next.direct(),
                     c.adds && last, list);
        }
        ahead.some(list);
        computeBlock(c, p, packed.piece[i][j], k + j * kDepth, blocks.start(b), blocks.size(b), C,
                     p.direct() ? c.outM : kPanel, list);
      }
  }
}

// How many of the panels that are left come next: at most kPanels, and no small rest at the end.
inline size_t panelsTogether(size_t left) {
  const size_t rounds = (left + kPanels - 1) / kPanels;
  return rounds ? (left + rounds - 1) / rounds : 0;
}

inline void positions(const PositionsCall& c, LaneScratch& scratch, int part = 0, int parts = 1) {
  if (c.M == 0) return;
  const RowBlocks blocks(c.M);
  const Share share = shareOf(c, blocks, part, parts);
  if (share.block == share.lastBlock) return;
  const size_t tileSize = static_cast<size_t>(c.M) * kPanel;
  float* tiles = scratch.tile.get(kPanels * tileSize);
  PackedPanels packed(scratch, c.K);
  for (size_t first = share.panel, panels = 0; first < share.lastPanel; first += panels) {
    panels = panelsTogether(share.lastPanel - first);
    const PanelPlan* plan = &c.plan[first];
    for (int k = 0; k < std::max(c.K, 1); k += kPieces * kDepth) {
      packed.fill(c, plan, panels, k);
      const bool last = k + kPieces * kDepth >= c.K;
      const size_t next = last ? first + panels : first;
      Ahead ahead;
      if (next < share.lastPanel)
        ahead = Ahead(c, &c.plan[next], panelsTogether(share.lastPanel - next), last ? 0 : k + kPieces * kDepth,
                      static_cast<int>(panels) * (share.lastBlock - share.block));
      for (int b0 = share.block; b0 < share.lastBlock; b0 += kRowBlocks)
        computeRows(c, plan, panels, packed, k, blocks,
                    {b0, std::min(b0 + kRowBlocks, share.lastBlock), share.lastBlock}, tiles, ahead);
    }
  }
  if (c.streams) drain();
}

// Whether a blob y of so many planes is stored past the caches: a large one, where panels are whole lines of it.
inline bool isStreamed(const float* y, size_t planes, int plane) {
  return planes * static_cast<size_t>(plane) >= kStreamed && plane % kLine == 0 &&
         reinterpret_cast<uintptr_t>(y) % 64 == 0;
}

// Into how many parts a unit of images is cut: where there are few units the threads share each.
inline int partsOfUnit(int threads, int units) {
  return units % threads == 0 || units >= 4 * threads ? 1 : (2 * threads + units - 1) / units;
}

// Calls body(group, part, parts): with enough groups each part gets whole groups, else a part of each group.
template <class Body>
void eachGroup(int groups, int part, int parts, const Body& body) {
  const bool whole = groups >= parts;
  for (int g = whole ? groups * part / parts : 0; g < (whole ? groups * (part + 1) / parts : groups); ++g)
    body(g, whole ? 0 : part, whole ? 1 : parts);
}

inline int panelsOf(int positions) { return (positions + kPanel - 1) / kPanel; }

// How long the busiest thread works, in panels, with units of so many images.
inline double panelsOfBusiest(int positionsPerImage, int images, int unit, int threads) {
  const int units = (images + unit - 1) / unit, each = panelsOf(unit * positionsPerImage),
            last = panelsOf((images - (units - 1) * unit) * positionsPerImage);
  if (partsOfUnit(threads, units) > 1 && units < threads)
    return static_cast<double>((units - 1) * each + last) / threads;
  const int rounds = (units + threads - 1) / threads;
  return (rounds - 1) * each + (units % threads == 1 || threads == 1 ? last : each);
}

// The group of images with the least panels, up to 2 % more for a smaller one: few lanes are empty, and no thread waits for
// another. It does not affect the bits.
inline int imagesPerUnit(int positionsPerImage, int images, int threads) {
  int best = 1;
  for (int g = 2; g <= std::min(16, images); ++g)
    if (panelsOfBusiest(positionsPerImage, images, g, threads) <
        0.98 * panelsOfBusiest(positionsPerImage, images, best, threads))
      best = g;
  return best;
}

// The smallest that wastes under 5 % of its last group of 32 positions.
inline int imagesPerAlignedUnit(int positionsPerImage, int images) {
  for (int g = 1; g <= 16; ++g) {
    const int q = g * positionsPerImage;
    if (g >= images || int64_t{(q + 31) / 32 * 32} * 100 <= int64_t{q} * 105) return std::max(1, std::min(g, images));
  }
  return std::max(1, std::min(16, images));
}

// The unit where kernel rows are left out, on which bits depend where weights are not finite: enough images that one output row
// over all of them fills panels.
inline int imagesPerTrimmedUnit(int positionsPerImage, int columns, int images) {
  return std::max(1, std::min(images, std::max(imagesPerAlignedUnit(positionsPerImage, images),
                                               (columns % 8 ? 96 : 32) / std::max(1, columns))));
}

}  // namespace crema::kernels::KNS
