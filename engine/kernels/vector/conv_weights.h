// Gradient of a convolution's weights: columns = a panel of output channels of dy transposed, rows = taps broadcast
// from the planes, no im2col. Sums run inside a piece (some images, or a strip of one), then over pieces: with several
// pieces and few weights threads take pieces, which are added in a binary tree; else threads take weights and pieces
// are added in turn. Pieces and this choice follow from the shape alone.
namespace crema::kernels::KNS {

// Whether the roles of x and dy, which are alike where each output is of one input, are better exchanged: those that are
// transposed then are fewer, and what comes out is the transpose.
inline bool exchanges(const ConvShape& s) {
  const bool alike = s.kh == 1 && s.kw == 1 && s.strideH == 1 && s.strideW == 1 && s.padH == 0 && s.padW == 0;
  const int64_t icg = s.ic / s.groups, ocg = s.oc / s.groups;
  return alike && icg < ocg && 10 * panelsOf(s.ic / s.groups) * ocg <= 11 * panelsOf(s.oc / s.groups) * icg;
}

class WeightGradient {
 public:
  // exchanged: of the shape with inputs for outputs; run(dy, x, dw) then.
  WeightGradient(Context& context, const ConvShape& s, bool exchanged)
      : context_(context),
        scratch_(context.scratch()),
        s_(s),
        exchanged_(exchanged),
        planes_(s, tapsExact(s)),
        plan_(planWeights(s, planes_)) {
    oh_ = s.oh(), ow_ = s.ow(), P_ = oh_ * ow_, icg_ = s.ic / s.groups, ocg_ = s.oc / s.groups;
    panels_ = (ocg_ + kPanel - 1) / kPanel;
    part_ = static_cast<size_t>(s.groups) * panels_ * plan_.rows * kPanel;
    image_ = planes_.channel * s.ic;
    // A chain runs over the positions of a piece: at most 640, an image of up to 2048, or some 1024 of a larger one. Where
    // threads take pieces there are eight; else as few as there can be, as each reads and writes all sums.
    const int most = std::clamp(640 / std::max(1, P_), 1, std::max(1, s.n)), eighth = std::max(1, (s.n + 7) / 8);
    chunk_ = std::min(most, eighth);
    strip_ = P_ <= 2048 ? std::max(1, oh_) : std::max(1, 1024 / ow_);
    strips_ = std::max(1, (oh_ + strip_ - 1) / strip_);
    gradientImage_ = static_cast<size_t>(s.groups) * panels_ * std::min(strip_, oh_) * ow_ * kPanel;
    pieces_ = (s.n + chunk_ - 1) / chunk_ * strips_;
    sideBySide_ = static_cast<size_t>(s.oc) * icg_ * s.kh * s.kw * pieces_ <= (size_t{1} << 21);
    if (!sideBySide_) {
      const int least = (s.n + most - 1) / most;
      chunk_ = std::max(1, (s.n + least - 1) / std::max(1, least));
      pieces_ = (s.n + chunk_ - 1) / chunk_ * strips_;
    }
  }

  void run(const float* x, const float* dy, float* dw, bool accumulate) {
    x_ = x, dy_ = dy;
    const bool sideBySide = sideBySide_ && pieces_ > 2;  // for one or two pieces both ways give the same sum
    acc_ = scratch_.shared[kPartialSums].get(sideBySide ? part_ * pieces_ : part_);
    if (pieces_ == 0) std::memset(acc_, 0, part_ * 4);
    sideBySide ? piecesSideBySide() : piecesInTurn();
    scatter(dw, accumulate);
  }

 private:
  // Images [n0, n0 + n), output rows [r0, r0 + rows).
  struct Piece {
    int n0, n, r0, rows;
  };
  Piece piece(int i) const {
    const int n0 = i / strips_ * chunk_, r0 = i % strips_ * strip_;
    return {n0, std::min(chunk_, s_.n - n0), r0, std::min(strip_, oh_ - r0)};
  }

  // dy of a piece's images, of one panel of output channels, transposed: [image][group][panel][position][kPanel].
  void transposeGradient(const Piece& p, int gp, float* to) const {
    const int g = gp / panels_, b = gp % panels_, positions = p.rows * ow_;
    for (int i = 0; i < p.n; ++i)
      toPanel(
          dy_ + (static_cast<size_t>(p.n0 + i) * s_.oc + static_cast<size_t>(g) * ocg_ + b * kPanel) * P_ + p.r0 * ow_,
          P_, std::min(kPanel, ocg_ - b * kPanel), positions,
          to + i * gradientImage_ + static_cast<size_t>(gp) * positions * kPanel);
  }

  void buildPlanes(int n0, int n, float* to) const {
    buildTogether(context_, s_, planes_, n, x_ + static_cast<size_t>(n0) * s_.ic * s_.h * s_.w, to);
  }

  // Rows [t * lines per tile, ...) of a set for one panel of output channels, over a piece.
  void tile(const TapSet& set, int gp, int t, const float* source, const float* gradient, const Piece& p,
            float* to) const {
    const int most = linesPerTile(set.J), lines = std::min(most, static_cast<int>(set.line.size()) - t * most);
    const float* line[kRows];
    for (int i = 0; i < lines; ++i)
      line[i] = source + static_cast<size_t>(gp / panels_) * icg_ * planes_.channel +
                set.line[static_cast<size_t>(t * most + i)] + static_cast<size_t>(p.r0) * planes_.columns;
    const bool flat = planes_.columns == ow_;
    const TapRun run{.step = set.one ? 1 : static_cast<ptrdiff_t>(planes_.channel),
                     .images = p.n,
                     .imageStep = static_cast<ptrdiff_t>(image_),
                     .rows = flat ? 1 : p.rows,
                     .rowStep = planes_.columns,
                     .columns = flat ? p.rows * ow_ : ow_,
                     .bImageStep = static_cast<ptrdiff_t>(gradientImage_)};
    tapTileFor(set.J, set.one, lines)(line, run, gradient + static_cast<size_t>(gp) * p.rows * ow_ * kPanel, to, false);
  }

  float* rowsOf(float* part, const TapSet& set, int gp, int t) const {
    return part +
           (static_cast<size_t>(gp) * plan_.rows + set.base + static_cast<size_t>(t) * linesPerTile(set.J) * set.J) *
               kPanel;
  }
  static int tilesOf(const TapSet& set) {
    return (static_cast<int>(set.line.size()) + linesPerTile(set.J) - 1) / linesPerTile(set.J);
  }

  // Threads that are more than the pieces share the panels of each: whose task a sum is does not affect it.
  void piecesSideBySide() {
    const size_t input = static_cast<size_t>(s_.ic) * s_.h * s_.w;
    const int all = s_.groups * panels_, parts = std::min(all, partsOfUnit(context_.pool().size(), pieces_));
    const bool together = (strips_ > 1 || parts > 1) && !planes_.plain;  // these read the same planes
    float* images = together ? scratch_.shared[kSharedPlanes].get(image_ * static_cast<size_t>(s_.n)) : nullptr;
    if (together) buildPlanes(0, s_.n, images);
    context_.pool().run(pieces_ * parts, [&](int task, int lane) {
      LaneScratch& mine = scratch_.lane[static_cast<size_t>(lane)];
      const int i = task / parts, part = task % parts;
      const Piece p = piece(i);
      const float* source = together ? images + static_cast<size_t>(p.n0) * image_ : x_ + p.n0 * input;
      if (!planes_.plain && !together) {
        float* copy = mine.planes.get(image_ * static_cast<size_t>(chunk_));
        for (int k = 0; k < p.n; ++k) planes_.build(source + k * input, s_.ic, copy + k * image_);
        source = copy;
      }
      float* gradient = mine.transposed.get(gradientImage_ * static_cast<size_t>(chunk_));
      for (int gp = all * part / parts; gp < all * (part + 1) / parts; ++gp) {
        transposeGradient(p, gp, gradient);
        for (const TapSet& set : plan_.sets)
          for (int t = 0; t < tilesOf(set); ++t)
            tile(set, gp, t, source, gradient, p, rowsOf(acc_ + part_ * i, set, gp, t));
      }
    });
    addTree();
  }

  void addTree() {
    for (int d = 1; d < pieces_; d *= 2) {
      const int pairs = (pieces_ - d + 2 * d - 1) / (2 * d);
      runUnless(part_ * pairs < (1u << 15), context_, pairs, [&](int i, int) {
        float* a = acc_ + part_ * (static_cast<size_t>(2) * d * i);
        const float* b = a + part_ * d;
        for (size_t k = 0; k < part_; k += VL) store(a + k, add(load(a + k), load(b + k)));
      });
    }
  }

  void piecesInTurn() {
    const int all = s_.groups * panels_;
    float* copy = planes_.plain ? nullptr : scratch_.shared[kSharedPlanes].get(image_ * static_cast<size_t>(chunk_));
    float* gradient = scratch_.shared[kSharedTransposed].get(gradientImage_ * static_cast<size_t>(chunk_));
    for (int i = 0; i < pieces_; ++i) {
      const Piece p = piece(i);
      const float* source = planes_.plain ? x_ + static_cast<size_t>(p.n0) * s_.ic * s_.h * s_.w : copy;
      if (!planes_.plain && p.r0 == 0) buildPlanes(p.n0, p.n, copy);
      context_.pool().run(all, [&](int gp, int) { transposeGradient(p, gp, gradient); });
      for (const TapSet& set : plan_.sets) {
        const int tiles = tilesOf(set);
        context_.pool().run(all * tiles, [&](int task, int) {
          const int t = task % tiles, gp = task / tiles;
          const int lines = std::min(linesPerTile(set.J), static_cast<int>(set.line.size()) - t * linesPerTile(set.J));
          float* to = rowsOf(acc_, set, gp, t);
          if (i == 0) return tile(set, gp, t, source, gradient, p, to);
          // Starts at zero and is then added, so that bits do not depend on threads.
          alignas(64) float sum[kRows * kPanel];
          tile(set, gp, t, source, gradient, p, sum);
          for (int k = 0; k < lines * set.J * kPanel; k += VL) store(to + k, add(load(to + k), load(sum + k)));
        });
      }
    }
  }

  void scatter(float* dw, bool accumulate) const {
    const size_t filter = static_cast<size_t>(icg_) * s_.kh * s_.kw;
    context_.pool().run(s_.groups * panels_, [&](int gp, int) {
      const int group = gp / panels_, panel = gp % panels_, count = std::min(kPanel, ocg_ - panel * kPanel);
      float* first = dw + (static_cast<size_t>(group) * ocg_ + static_cast<size_t>(panel) * kPanel) * filter;
      for (const TapSet& set : plan_.sets) {
        const float* rows = acc_ + (static_cast<size_t>(gp) * plan_.rows + set.base) * kPanel;
        if (exchanged_)
          copyRows(rows, set.weight, count, accumulate,
                   dw + static_cast<size_t>(group) * ocg_ * filter + static_cast<size_t>(panel) * kPanel);
        else
          scatterRows(rows, set.weight, count, filter, accumulate, first);
      }
    });
  }

  // [row][kPanel] to rows of ocg_ numbers.
  void copyRows(const float* from, const std::vector<int>& weight, int count, bool accumulate, float* to) const {
    for (const int w : weight) {
      float* d = to + static_cast<size_t>(w) * ocg_;
      for (int v = 0; v < count; v += VL) {
        const Mask here = lanes(0, std::min(VL, count - v));
        store(here, d + v, accumulate ? add(load(here, d + v), load(here, from + v)) : load(here, from + v));
      }
      from += kPanel;
    }
  }

  Context& context_;
  Context::Scratch& scratch_;
  const ConvShape& s_;
  const bool exchanged_;
  Planes planes_;
  WeightPlan plan_;
  int oh_, ow_, P_, icg_, ocg_, panels_, chunk_, strip_, strips_, pieces_;
  bool sideBySide_;  // the weights are few
  size_t part_, image_, gradientImage_;
  const float *x_ = nullptr, *dy_ = nullptr;
  float* acc_ = nullptr;
};

inline void convBackwardWeights(Context& context, const ConvShape& s, const float* x, const float* dy, float* dw,
                                bool accumulate) {
  if (isDepthwise(s)) return depthwiseBackwardWeights(context, s, x, dy, dw, accumulate);
  const int filtered = winogradTaps(s);
  if (filtered == 3) return WinogradWeights<ThreeTaps>(context, s).run(x, dy, dw, accumulate);
  if (filtered == 5) return WinogradWeights<FiveTaps>(context, s).run(x, dy, dw, accumulate);
  if (exchanges(s)) {
    ConvShape turned = s;
    std::swap(turned.ic, turned.oc);
    return WeightGradient(context, turned, true).run(dy, x, dw, accumulate);
  }
  WeightGradient(context, s, false).run(x, dy, dw, accumulate);
}

// Sums of planes: 16 fixed chains and a fixed tree per plane, then the images one after the other in double.
inline void convBackwardBias(Context& context, const ConvShape& s, const float* dy, float* dbias, bool accumulate) {
  const int P = s.oh() * s.ow();
  const bool small = static_cast<int64_t>(s.n) * s.oc * P < (1 << 16);
  context.pool().run(small ? 1 : s.oc, [&](int task, int) {
    for (int m = small ? 0 : task; m < (small ? s.oc : task + 1); ++m) {
      double total = 0;
      for (int n = 0; n < s.n; ++n) {
        const float* d = dy + (static_cast<size_t>(n) * s.oc + m) * P;
        float chain[16] = {};
        int p = 0;
        for (; p + 16 <= P; p += 16)
          for (int l = 0; l < 16; ++l) chain[l] += d[p + l];
        for (int l = 0; p < P; ++p, ++l) chain[l] += d[p];
        for (int half = 8; half; half /= 2)
          for (int l = 0; l < half; ++l) chain[l] += chain[l + half];
        total += chain[0];
      }
      dbias[m] = static_cast<float>(accumulate ? dbias[m] + total : total);
    }
  });
}

}  // namespace crema::kernels::KNS
