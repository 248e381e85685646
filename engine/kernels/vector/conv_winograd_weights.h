// Gradient of a convolution's weights by minimal filtering (winograd.h), the transpose of conv_winograd.h: products of
// inputs are those of the forward pass, dy goes back to products, each product is summed over tiles, and the sums go back
// to taps. A chain runs over the tiles of a piece, some images or a strip of one, pieces are added in turn. Pieces follow
// from the shape; threads share out the products, which affects no bits.
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
    off_ = winogradOffsets<F>(planes_, s.ic);
    // At most 640 tiles and 8 MiB of transformed inputs a piece: they are read once for each panel of output channels.
    const int most = std::clamp((1 << 21) / (kProducts * s.ic), 64, 640), tiles = tileRows_ * tileColumns_;
    chunk_ = std::clamp(most / tiles, 1, std::max(1, s.n));
    strip_ = tiles <= 2 * most ? tileRows_ : std::max(1, most / tileColumns_);
  }

  void run(const float* x, const float* dy, float* dw, bool accumulate) {
    const size_t sums = static_cast<size_t>(columns_) * kProducts * icg_ * kPanel;
    acc_ = scratch_.shared[kPartialSums].get(sums);
    if (s_.n == 0) std::memset(acc_, 0, sums * 4);
    bool first = true;
    for (int n0 = 0; n0 < s_.n; n0 += chunk_)
      for (int r0 = 0; r0 < tileRows_; r0 += strip_, first = false) {
        const Piece p(*this, n0, r0);
        if (r0 == 0) buildPlanes(p, x);
        inputs(p);
        outputs(p, dy);
        products(p, first);
      }
    weights(dw, accumulate);
  }

 private:
  static constexpr int kProducts = F::kProducts * F::kProducts;

  // Images [n0, n0 + n), rows of tiles [r0, r0 + rows), in panels.
  struct Piece {
    Piece(const WinogradWeights& w, int image, int row)
        : n0(image),
          n(std::min(w.chunk_, w.s_.n - image)),
          r0(row),
          rows(std::min(w.strip_, w.tileRows_ - row)),
          tiles(n * rows * w.tileColumns_),
          plan(planPanels(winogradMap(w.s_, w.planes_, rows, n), 0)) {}
    int n0, n, r0, rows, tiles;
    std::vector<PanelPlan> plan;
  };

  void buildPlanes(const Piece& p, const float* x) {
    source_ = scratch_.shared[kSharedPlanes].get(image_ * static_cast<size_t>(chunk_));
    buildTogether(context_, p.n, s_.ic, [&](int i, int c0, int channels) {
      planes_.build(x + (static_cast<size_t>(p.n0 + i) * s_.ic + c0) * s_.h * s_.w, channels,
                    source_ + i * image_ + c0 * planes_.channel);
    });
  }

  // [panel][product][channel][kPanel]
  void inputs(const Piece& p) {
    constexpr int kSquare = F::kInputs * F::kInputs, kBlock = 32;  // channels a task
    const size_t product = static_cast<size_t>(s_.ic) * kPanel;
    inputs_ = scratch_.shared[kSharedInput].get(p.plan.size() * kProducts * product);
    const int blocks = (s_.ic + kBlock - 1) / kBlock;
    context_.pool().run(static_cast<int>(p.plan.size()) * blocks, [&](int t, int) {
      const int panel = t / blocks, c0 = t % blocks * kBlock;
      transformInputs<F>(p.plan[static_cast<size_t>(panel)], source_ + static_cast<size_t>(p.r0) * planes_.columns,
                         off_.data() + static_cast<size_t>(c0) * kSquare, std::min(kBlock, s_.ic - c0),
                         static_cast<ptrdiff_t>(product),
                         inputs_ + static_cast<size_t>(panel) * kProducts * product + static_cast<size_t>(c0) * kPanel);
    });
  }

  size_t paddedTiles(const Piece& p) const { return p.plan.size() * kPanel; }

  // [panel of output channels][product][tile][kPanel]; tiles that fill the last panel are zero.
  void outputs(const Piece& p, const float* dy) {
    const size_t product = paddedTiles(p) * kPanel, positions = static_cast<size_t>(s_.oh()) * s_.ow();
    outputs_ = scratch_.shared[kSharedTransposed].get(static_cast<size_t>(columns_) * kProducts * product);
    const int first = 2 * p.r0, rows = std::min(2 * p.rows, s_.oh() - first), perGroup = columns_ / s_.groups;
    context_.pool().run(columns_ * p.n, [&](int t, int lane) {
      const int column = t / p.n, i = t % p.n, o0 = column % perGroup * kPanel;
      float* turned =
          scratch_.lane[static_cast<size_t>(lane)].transposed.get(static_cast<size_t>(rows) * s_.ow() * kPanel);
      const size_t plane = static_cast<size_t>(p.n0 + i) * s_.oc + static_cast<size_t>(column / perGroup) * ocg_ + o0;
      toPanel(dy + plane * positions + static_cast<size_t>(first) * s_.ow(), static_cast<ptrdiff_t>(positions),
              std::min(kPanel, ocg_ - o0), rows * s_.ow(), turned);
      float* to = outputs_ + static_cast<size_t>(column) * kProducts * product;
      const int before = i * p.rows * tileColumns_;
      for (int r = 0; r < p.rows; ++r)
        for (int c = 0; c < tileColumns_; ++c)
          tileBack(turned, rows, r, c, product, to + static_cast<size_t>(before + r * tileColumns_ + c) * kPanel);
      if (i + 1 == p.n)
        for (int e = 0; e < kProducts; ++e)
          std::memset(to + e * product + static_cast<size_t>(p.tiles) * kPanel, 0,
                      (paddedTiles(p) - static_cast<size_t>(p.tiles)) * kPanel * 4);
    });
  }

  void tileBack(const float* turned, int rows, int r, int c, size_t product, float* to) const {
    const bool below = 2 * r + 1 < rows, right = 2 * c + 1 < s_.ow();
    const float* at = turned + (static_cast<size_t>(2 * r) * s_.ow() + 2 * c) * kPanel;
    alignas(64) float four[4][VL];
    for (int v = 0; v < kPanel; v += VL) {
      store(four[0], load(at + v));
      store(four[1], right ? load(at + kPanel + v) : zero());
      store(four[2], below ? load(at + static_cast<ptrdiff_t>(s_.ow()) * kPanel + v) : zero());
      store(four[3], below && right ? load(at + static_cast<ptrdiff_t>(s_.ow() + 1) * kPanel + v) : zero());
      alongBoth<2, F::kProducts>(
          four[0], VL, [](const V* y, V* m) { F::outputsBack(y, m); },
          [&](int i, int j, V m) { store(to + static_cast<size_t>(i * F::kProducts + j) * product + v, m); });
    }
  }

  // Adds to [panel of output channels][product][channel][kPanel] the sums over a piece's tiles.
  void products(const Piece& p, bool first) {
    const int most = linesPerTile(3), triples = icg_ / 3, tasks = (triples + most - 1) / most + (icg_ % 3 > 0);
    const TapRun run{.step = kPanel,
                     .images = 1,
                     .imageStep = 0,
                     .rows = static_cast<int>(p.plan.size()),
                     .rowStep = static_cast<ptrdiff_t>(kProducts) * s_.ic * kPanel,
                     .columns = kPanel,
                     .bImageStep = 0};
    context_.pool().run(columns_ * kProducts, [&](int t, int) {
      const int e = t % kProducts, g = t / kProducts / (columns_ / s_.groups);
      const float* from = inputs_ + (static_cast<size_t>(e) * s_.ic + static_cast<size_t>(g) * icg_) * kPanel;
      const float* gradient = outputs_ + static_cast<size_t>(t) * paddedTiles(p) * kPanel;
      float* to = acc_ + static_cast<size_t>(t) * icg_ * kPanel;
      const float* line[kRows];
      for (int i = 0; i < tasks; ++i) {
        const bool rest = i * most >= triples;
        const int lines = rest ? icg_ % 3 : std::min(most, triples - i * most), c0 = rest ? triples * 3 : i * most * 3;
        for (int l = 0; l < lines; ++l) line[l] = from + static_cast<ptrdiff_t>(c0 + (rest ? l : 3 * l)) * kPanel;
        tapTileFor(rest ? 1 : 3, rest, lines)(line, run, gradient, to + static_cast<ptrdiff_t>(c0) * kPanel, !first);
      }
    });
  }

  void weights(float* dw, bool accumulate) const {
    constexpr int kTaps = F::kTaps * F::kTaps;
    const size_t filter = static_cast<size_t>(icg_) * kTaps;
    std::vector<int> weight(filter);
    for (size_t k = 0; k < filter; ++k) weight[k] = static_cast<int>(k);
    const int perGroup = columns_ / s_.groups;
    context_.pool().run(columns_, [&](int column, int lane) {
      float* taps = scratch_.lane[static_cast<size_t>(lane)].transposed.get(filter * kPanel);
      const float* sums = acc_ + static_cast<size_t>(column) * kProducts * icg_ * kPanel;
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
  int icg_, ocg_, tileRows_, tileColumns_, columns_, chunk_,
      strip_;  // columns_: panels of output channels, of all groups
  size_t image_;
  std::vector<int> off_;
  float *acc_ = nullptr, *source_ = nullptr, *inputs_ = nullptr, *outputs_ = nullptr;
};

}  // namespace crema::kernels::KNS
