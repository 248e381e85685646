// Gradient of a convolution's weights by minimal filtering (winograd.h), the transpose of conv_winograd.h. Products of inputs
// are those of the forward pass, dy goes back to products, each product is summed over tiles, and the sums go back
// to taps. A chain runs over the tiles of a piece, some images or a strip of one. Where the sums are small, eight runs of
// pieces are summed side by side, each in its thread's cache, and added in a binary tree; else pieces are added in turn and
// threads share out each. Pieces and this choice follow from the shape.
namespace crema::kernels::KNS {

template <class F>
class WinogradWeights {
 public:
  WinogradWeights(Context& context, const ConvShape& s)
      : context_(context), scratch_(context.scratch()), s_(s), planes_(winogradPlanes(s)) {
    icg_ = s.ic / s.groups, ocg_ = s.oc / s.groups;
    tileRows_ = (s.oh() + 1) / 2, tileColumns_ = (s.ow() + 1) / 2;
    columns_ = s.groups * ((ocg_ + kPanel - 1) / kPanel);
    image_ = planes_.channel * s.ic;
    sums_ = static_cast<size_t>(columns_) * kProducts * icg_ * kPanel;
    off_ = winogradOffsets<F>(planes_, s.ic);
    // What is transformed of a piece's inputs is read once for each panel of output channels: with one of these 3/4 MiB of it, where
    // the sums are in a cache beside it, else 8 MiB and at most 640 tiles. Images in whole panels of tiles, as others are computed too.
    const bool small = static_cast<int64_t>(s.groups) * icg_ * ocg_ * kProducts <= (1 << 17);
    const int tiles = tileRows_ * tileColumns_,
              most = small ? std::clamp((3 << 16) / (kProducts * (s.ic + kTilesOfPanel)), 32, 640)
                           : std::clamp((1 << 21) / (kProducts * s.ic), 64, 640);
    chunk_ = std::clamp(most / tiles, 1, std::max(1, s.n));
    const int whole = kTilesOfPanel / std::gcd(tiles, kTilesOfPanel);
    if (chunk_ > whole) chunk_ -= chunk_ % whole;
    strip_ = tiles <= 2 * most ? tileRows_ : std::max(1, most / tileColumns_);
    strips_ = (tileRows_ + strip_ - 1) / strip_;
    pieces_ = (s.n + chunk_ - 1) / chunk_ * strips_;
    runs_ = small && pieces_ > 1 ? std::min(8, pieces_) : 1;
  }

  void run(const float* x, const float* dy, float* dw, bool accumulate) {
    float* sums = scratch_.shared[kPartialSums].get(sums_ * static_cast<size_t>(runs_));
    if (pieces_ == 0) std::memset(sums, 0, sums_ * 4);
    if (runs_ >= context_.pool().size() && runs_ > 1) {
      context_.pool().run(runs_, [&](int r, int lane) {
        LaneScratch& mine = scratch_.lane[static_cast<size_t>(lane)];
        Work work{*this, x, dy, sums + sums_ * static_cast<size_t>(r), mine.planes, mine.panel, lane};
        work.pieces(pieces_ * r / runs_, pieces_ * (r + 1) / runs_);
      });
    } else {  // more threads than runs: all at each
      for (int r = 0; r < runs_; ++r) {
        Work work{*this,
                  x,
                  dy,
                  sums + sums_ * static_cast<size_t>(r),
                  scratch_.shared[kSharedPlanes],
                  scratch_.shared[kSharedInput]};
        work.pieces(pieces_ * r / runs_, pieces_ * (r + 1) / runs_);
      }
    }
    addRuns(sums);
    weights(sums, dw, accumulate);
  }

 private:
  static constexpr int kProducts = F::kProducts * F::kProducts;
  static constexpr int kTilesOfPanel = 32;  // the wider panel: pieces are the same for all instruction sets

  // Images [n0, n0 + n), rows of tiles [r0, r0 + rows), in panels.
  struct Piece {
    Piece(const WinogradWeights& w, int i)
        : n0(i / w.strips_ * w.chunk_),
          n(std::min(w.chunk_, w.s_.n - n0)),
          r0(i % w.strips_ * w.strip_),
          rows(std::min(w.strip_, w.tileRows_ - r0)),
          tiles(n * rows * w.tileColumns_),
          plan(planPanels(winogradMap(w.s_, w.planes_, rows, n), 0)) {}
    int n0, n, r0, rows, tiles;
    std::vector<PanelPlan> plan;
    size_t paddedTiles() const { return plan.size() * kPanel; }
    // Between products of the gradient of outputs; as between those of inputs, a little more than they take (conv_winograd.h).
    size_t gradientStep() const { return (paddedTiles() + 1) * kPanel; }
  };
  size_t inputStep() const { return (static_cast<size_t>(s_.ic) + 1) * kPanel; }

  void addRuns(float* sums) const {
    constexpr size_t kTask = 4096;
    if (runs_ == 1) return;
    context_.pool().run(static_cast<int>((sums_ + kTask - 1) / kTask), [&](int task, int) {
      const size_t first = kTask * static_cast<size_t>(task), last = std::min(sums_, first + kTask);
      for (int d = 1; d < runs_; d *= 2)
        for (int r = 0; r + d < runs_; r += 2 * d) {
          float* a = sums + sums_ * static_cast<size_t>(r);
          const float* b = a + sums_ * static_cast<size_t>(d);
          for (size_t k = first; k < last; k += VL) store(a + k, add(load(a + k), load(b + k)));
        }
    });
  }

  // One run of pieces; by a single thread of number `lane`, or by all of them where it is -1.
  struct Work {
    const WinogradWeights& w;
    const float *x, *dy;
    float* sums;
    Buffer &planesBuffer, &inputsBuffer;
    int lane = -1;
    float *source = nullptr, *inputs = nullptr;

    template <class Body>
    void each(int tasks, const Body& body) const {
      if (lane < 0) return w.context_.pool().run(tasks, body);
      for (int t = 0; t < tasks; ++t) body(t, lane);
    }

    void pieces(int from, int to) {
      for (int i = from; i < to; ++i) {
        const Piece p(w, i);
        if (p.r0 == 0 || i == from) buildPlanes(p);
        transform(p);
        gradients(p, i == from);
      }
    }

    void buildPlanes(const Piece& p) {
      constexpr int kBlock = 8;  // channels a task
      const ConvShape& s = w.s_;
      source = planesBuffer.get(w.image_ * static_cast<size_t>(w.chunk_));
      const int blocks = (s.ic + kBlock - 1) / kBlock;
      each(p.n * blocks, [&](int t, int) {
        const int i = t / blocks, c0 = t % blocks * kBlock;
        w.planes_.build(x + (static_cast<size_t>(p.n0 + i) * s.ic + c0) * s.h * s.w, std::min(kBlock, s.ic - c0),
                        source + i * w.image_ + c0 * w.planes_.channel);
      });
    }

    // [panel][product][channel][kPanel]
    void transform(const Piece& p) {
      constexpr int kSquare = F::kInputs * F::kInputs, kBlock = 32;  // channels a task
      const size_t product = w.inputStep();
      inputs = inputsBuffer.get(p.plan.size() * kProducts * product);
      const int blocks = (w.s_.ic + kBlock - 1) / kBlock;
      each(static_cast<int>(p.plan.size()) * blocks, [&](int t, int) {
        const int panel = t / blocks, c0 = t % blocks * kBlock;
        transformInputs<F>(
            p.plan[static_cast<size_t>(panel)], source + static_cast<size_t>(p.r0) * w.planes_.columns,
            w.off_.data() + static_cast<size_t>(c0) * kSquare, std::min(kBlock, w.s_.ic - c0),
            static_cast<ptrdiff_t>(product),
            inputs + static_cast<size_t>(panel) * kProducts * product + static_cast<size_t>(c0) * kPanel);
      });
    }

    // What dy comes to, and the sums of products. A thread that has whole panels of output channels finds each in its second
    // cache or the one behind it still; where panels do not share out well, all are transformed first.
    void gradients(const Piece& p, bool first) {
      const size_t panel = kProducts * p.gradientStep();
      const int lanes = w.context_.pool().size();
      if (lane >= 0 || w.columns_ % lanes == 0 || w.columns_ >= 4 * lanes)
        return each(w.columns_, [&](int column, int on) {
          float* outputs = w.scratch_.lane[static_cast<size_t>(on)].tile.get(panel);
          for (int i = 0; i < p.n; ++i) transformBack(p, column, i, on, outputs);
          for (int e = 0; e < kProducts; ++e) multiply(p, column, e, outputs, first);
        });
      float* outputs = w.scratch_.shared[kSharedTransposed].get(static_cast<size_t>(w.columns_) * panel);
      each(w.columns_ * p.n, [&](int t, int on) {
        transformBack(p, t / p.n, t % p.n, on, outputs + static_cast<size_t>(t / p.n) * panel);
      });
      each(w.columns_ * kProducts, [&](int t, int) {
        const int column = t / kProducts;
        multiply(p, column, t % kProducts, outputs + static_cast<size_t>(column) * panel, first);
      });
    }

    // Image i of the piece, in a panel of output channels: [product][tile][kPanel]; tiles that fill the last panel are zero.
    void transformBack(const Piece& p, int column, int i, int on, float* to) const {
      const size_t product = p.gradientStep(), positions = static_cast<size_t>(w.s_.oh()) * w.s_.ow();
      const int first = 2 * p.r0, rows = std::min(2 * p.rows, w.s_.oh() - first), perGroup = w.columns_ / w.s_.groups,
                o0 = column % perGroup * kPanel;
      float* turned =
          w.scratch_.lane[static_cast<size_t>(on)].transposed.get(static_cast<size_t>(rows) * w.s_.ow() * kPanel);
      const size_t plane =
          static_cast<size_t>(p.n0 + i) * w.s_.oc + static_cast<size_t>(column / perGroup) * w.ocg_ + o0;
      toPanel(dy + plane * positions + static_cast<size_t>(first) * w.s_.ow(), static_cast<ptrdiff_t>(positions),
              std::min(kPanel, w.ocg_ - o0), rows * w.s_.ow(), turned);
      const int before = i * p.rows * w.tileColumns_;
      for (int r = 0; r < p.rows; ++r)
        for (int c = 0; c < w.tileColumns_; ++c)
          tileBack(turned, rows, r, c, product, to + static_cast<size_t>(before + r * w.tileColumns_ + c) * kPanel);
      if (i + 1 == p.n)
        for (int e = 0; e < kProducts; ++e)
          std::memset(to + e * product + static_cast<size_t>(p.tiles) * kPanel, 0,
                      (p.paddedTiles() - static_cast<size_t>(p.tiles)) * kPanel * 4);
    }

    void tileBack(const float* turned, int rows, int r, int c, size_t product, float* to) const {
      const bool below = 2 * r + 1 < rows, right = 2 * c + 1 < w.s_.ow();
      const float* at = turned + (static_cast<size_t>(2 * r) * w.s_.ow() + 2 * c) * kPanel;
      alignas(64) float four[4][VL];
      for (int v = 0; v < kPanel; v += VL) {
        store(four[0], load(at + v));
        store(four[1], right ? load(at + kPanel + v) : zero());
        store(four[2], below ? load(at + static_cast<ptrdiff_t>(w.s_.ow()) * kPanel + v) : zero());
        store(four[3], below && right ? load(at + static_cast<ptrdiff_t>(w.s_.ow() + 1) * kPanel + v) : zero());
        alongBoth<2, F::kProducts>(
            four[0], VL, [](const V* y, V* m) { F::outputsBack(y, m); },
            [&](int i, int j, V m) { store(to + static_cast<size_t>(i * F::kProducts + j) * product + v, m); });
      }
    }

    // Adds to [panel of output channels][product][channel][kPanel] the sums over a piece's tiles, for one panel and product.
    void multiply(const Piece& p, int column, int e, const float* outputs, bool first) const {
      const int g = column / (w.columns_ / w.s_.groups);
      const float* from = inputs + e * w.inputStep() + static_cast<size_t>(g) * w.icg_ * kPanel;
      const float* gradient = outputs + static_cast<size_t>(e) * p.gradientStep();
      float* to = sums + (static_cast<size_t>(column) * kProducts + static_cast<size_t>(e)) * w.icg_ * kPanel;
      const RowBlocks blocks(w.icg_);
      for (int b = 0; b < blocks.count; ++b) {
        const ptrdiff_t before = static_cast<ptrdiff_t>(blocks.start(b)) * kPanel;
        panelTileFor(blocks.size(b))(static_cast<int>(p.plan.size()), from + before,
                                     static_cast<ptrdiff_t>(kProducts * w.inputStep()), gradient, to + before, !first);
      }
    }
  };

  void weights(const float* all, float* dw, bool accumulate) const {
    constexpr int kTaps = F::kTaps * F::kTaps;
    const size_t filter = static_cast<size_t>(icg_) * kTaps;
    std::vector<int> weight(filter);
    for (size_t k = 0; k < filter; ++k) weight[k] = static_cast<int>(k);
    const int perGroup = columns_ / s_.groups;
    context_.pool().run(columns_, [&](int column, int lane) {
      float* taps = scratch_.lane[static_cast<size_t>(lane)].transposed.get(filter * kPanel);
      const float* sums = all + static_cast<size_t>(column) * kProducts * icg_ * kPanel;
      for (int c = 0; c < icg_; ++c)
        for (int v = 0; v < kPanel; v += VL)
          alongBoth<F::kProducts, F::kTaps>(
              sums + static_cast<size_t>(c) * kPanel + v, static_cast<ptrdiff_t>(icg_) * kPanel,
              [](const V* u, V* g) { F::weightsBack(u, g); },
              [&](int a, int b, V g) {
                store(taps + (static_cast<size_t>(c) * kTaps + a * F::kTaps + b) * kPanel + v, g);
              });
      const int o0 = column % perGroup * kPanel;
      scatterRows(taps, weight, std::min(kPanel, ocg_ - o0), filter, accumulate,
                  dw + (static_cast<size_t>(column / perGroup) * ocg_ + o0) * filter);
    });
  }

  Context& context_;
  Context::Scratch& scratch_;
  const ConvShape& s_;
  Planes planes_;
  int icg_, ocg_, tileRows_, tileColumns_, chunk_, strip_, strips_, pieces_, runs_;
  int columns_;  // panels of output channels, of all groups
  size_t image_, sums_;
  std::vector<int> off_;
};

}  // namespace crema::kernels::KNS
