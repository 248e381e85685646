// Products where positions are few, as in the last layers of a net for one picture: a panel is kPanel outputs instead of kPanel
// positions, so that no lanes are empty, each thread reads weights of its own, and these come from memory once. Chains, pieces
// and bits are those of positions().
namespace crema::kernels::KNS {

constexpr int kFewPositions = 256;

// Whether outputs fill whole panels and positions do not.
inline bool turns(int positions, int outputs) {
  return outputs % kPanel == 0 && positions <= kFewPositions && panelsOf(positions) * kPanel * 20 > positions * 21;
}

// C [rows][kPanel outputs] = start + sum_k A[k][row] * B[k][output] over pieces of k; A is [K][kPanel]. What follows B in memory
// is asked for.
inline void turnedProduct(int rows, int K, const float* A, const float* B, const float* bias, float* C) {
  const RowBlocks blocks(rows);
  for (int k = 0; k < K; k += kDepth) {
    const int depth = std::min(kDepth, K - k);
    const float* source[2] = {B + static_cast<ptrdiff_t>(k) * kPanel, nullptr};
    const float* next = source[0] + static_cast<ptrdiff_t>(depth) * kPanel;
    for (int b = 0; b < blocks.count; ++b) {
      const float* a = A + static_cast<ptrdiff_t>(k) * kPanel + blocks.start(b);
      const float* ask = b * kLine < kPanel ? next + static_cast<ptrdiff_t>(b) * depth * kLine : a;
      gemmTileFor(kTurned, blocks.size(b))(depth, a, source, nullptr, C + blocks.start(b) * kPanel, kPanel, k > 0, bias,
                                           ask, nullptr, nullptr);
    }
  }
}

// Inputs of all panels, by all threads: [panel][k][kPanel].
inline const float* packAllPanels(Context& context, const PositionsCall& c) {
  const int panels = static_cast<int>(c.plan.size()), pieces = (c.K + kDepth - 1) / kDepth;
  const size_t panelSize = static_cast<size_t>(c.K) * kPanel;
  float* packed = context.scratch().shared[kSharedInput].get(panelSize * static_cast<size_t>(panels));
  context.pool().run(panels * pieces, [&](int t, int) {
    const int p = t / pieces, k = t % pieces * kDepth;
    packPanel(c.plan[static_cast<size_t>(p)], c.source, c.off, k, std::min(c.K, k + kDepth),
              packed + panelSize * static_cast<size_t>(p) + static_cast<ptrdiff_t>(k) * kPanel);
  });
  return packed;
}

// positions() for a call whose A is [panel of outputs][k][kPanel].
inline void turnedPositions(Context& context, const PositionsCall& c) {
  auto& scratch = context.scratch();
  const int panels = static_cast<int>(c.plan.size()), outputs = c.M / kPanel;
  const size_t panelSize = static_cast<size_t>(c.K) * kPanel;
  const bool each = context.pool().size() <= kFewThreads;  // packs its own
  const float* shared = each ? nullptr : packAllPanels(context, c);
  OwnInputs own(context, panelSize, panels, true);
  // Panel after panel of the same outputs: a thread has tasks side by side, so that weights mostly meet all positions in one.
  context.pool().run(outputs * panels, [&](int t, int lane) {
    float* tile = scratch.lane[static_cast<size_t>(lane)].tile.get(static_cast<size_t>(2) * kPanel * kPanel);
    float* turned = tile + kPanel * kPanel;
    const int m0 = t / panels * kPanel, p = t % panels;
    PositionsCall here = c;
    here.out += m0 * c.outM, here.outStart += m0 * c.outM, here.channel += m0;
    const PanelPlan& plan = c.plan[static_cast<size_t>(p)];
    const float* packed = each ? own.get(lane, p, [&](float* to) { packPanel(plan, c.source, c.off, 0, c.K, to); })
                               : shared + panelSize * static_cast<size_t>(p);
    turnedProduct(plan.length, c.K, packed, c.A + static_cast<size_t>(m0) * c.K, c.bias ? c.bias + m0 : nullptr, tile);
    toPanel(tile, kPanel, plan.length, kPanel, turned);
    if (c.then) finishRows(here, plan, 0, kPanel, turned, kPanel);
    scatterPanel(here, plan, 0, kPanel, turned);
  });
}

// Weights of convolutions of 1 x 1 as [group][panel of outputs][input][kPanel].
inline void packTurned(Context& context, const ConvShape& s, const float* w, float* to) {
  const int K = s.ic / s.groups;
  context.pool().run(s.oc / kPanel, [&](int t, int) {
    const size_t first = static_cast<size_t>(t) * kPanel * K;
    toPanel<kDepth>(w + first, K, kPanel, K, to + first);
  });
}

}  // namespace crema::kernels::KNS
