// Gradient of a convolution's input by the transpose of minimal filtering (winograd.h) where the output is much smaller than the
// input: each 2 x 2 numbers of dy go back to products, these are summed over output channels, and what they come to is
// spread over the inputs that the tile has seen:
//   dx = sum over tiles of  B [ (G g) * (A dy) ]
// The sum of an input goes over its places in the tiles' windows, by rows and columns, that is from its last tile to its
// first. LeNet's second convolution has 16 tiles of 49 products for each pair of channels so, 36 if tiles go over dx, and 1,600
// products by taps.
namespace crema::kernels::KNS {

// A tile of dy to products, as inputs become products in the forward pass.
template <class F>
struct GradientTile {
  static constexpr int kInputs = 2, kProducts = F::kProducts;
  INL static void inputs(const V* y, V* m) { F::outputsBack(y, m); }
};

template <class F>
class WinogradSpread {
 public:
  // A: the packed products of the filters.
  WinogradSpread(Context& context, const ConvShape& s, const float* A)
      : context_(context),
        s_(s),
        A_(A),
        planes_(parityPlanes({s.n, s.oc, s.oh(), s.ow(), 1, 2, 2}, (s.oh() + 1) / 2, (s.ow() + 1) / 2)) {
    icg_ = s.ic / s.groups, ocg_ = s.oc / s.groups;
    productStep_ = (static_cast<size_t>(ocg_) + 1) * kPanel;  // as in conv_winograd.h
    image_ = planes_.channel * s.oc;
    off_ = winogradOffsets<GradientTile<F>>(planes_, ocg_);
    unit_ = imagesPerUnit(tiles(), s.n, context.pool().size());
    plan_ = planFor(unit_), lastPlan_ = planFor(s.n % unit_);
  }

  void run(const float* dy, float* dx) const {
    const int units = (s_.n + unit_ - 1) / unit_,
              parts = std::min(partsOfUnit(context_.pool().size(), units), s_.groups * RowBlocks(icg_).count);
    const size_t input = static_cast<size_t>(s_.ic) * s_.h * s_.w,
                 output = static_cast<size_t>(s_.oc) * s_.oh() * s_.ow();
    context_.pool().run(units * parts, [&](int t, int lane) {
      LaneScratch& mine = context_.scratch().lane[static_cast<size_t>(lane)];
      const int n0 = t / parts * unit_, n = std::min(unit_, s_.n - n0);
      float* source = mine.planes.get(image_ * static_cast<size_t>(unit_));
      for (int i = 0; i < n; ++i) planes_.build(dy + static_cast<size_t>(n0 + i) * output, s_.oc, source + i * image_);
      eachGroup(s_.groups, t % parts, parts, [&](int g, int part, int of) {
        const Windows windows = windowsOf(n, g, part, of, source, mine);
        for (int c = windows.first; c < windows.last; ++c)
          for (int i = 0; i < n; ++i)
            addWindows(windows, c, i,
                       dx + static_cast<size_t>(n0 + i) * input + (static_cast<size_t>(g) * icg_ + c) * s_.h * s_.w);
      });
    });
  }

 private:
  static constexpr int kProducts = F::kProducts * F::kProducts, kSquare = F::kInputs * F::kInputs;

  int tiles() const { return planes_.rows * planes_.columns; }
  std::vector<PanelPlan> planFor(int images) const {
    return planPanels({.rows = 1,
                       .columns = tiles(),
                       .images = images,
                       .sourceImage = static_cast<ptrdiff_t>(image_),
                       .outImage = tiles()},
                      0);
  }

  // Of input channels [first, last) of a group: [channel][kInputs][kInputs][tile of the unit, `step`].
  struct Windows {
    int first, last;
    size_t step;
    float* at;
    float* of(int channel, int i) const { return at + (static_cast<size_t>(channel - first) * kSquare + i) * step; }
  };

  // What part `part` of `of` of the input channels of group g gets from each tile of a unit of n images.
  Windows windowsOf(int n, int g, int part, int of, const float* source, LaneScratch& mine) const {
    const auto& plan = n == unit_ ? plan_ : lastPlan_;
    const RowBlocks blocks(icg_);
    const int some = ocg_ > kDepth ? kRowBlocks : 1, b0 = blocks.count * part / of, b1 = blocks.count * (part + 1) / of;
    if (b0 == b1) return {0, 0, 0, nullptr};
    Windows windows{blocks.start(b0), blocks.start(b1), plan.size() * kPanel, nullptr};
    windows.at = mine.transposed.get(static_cast<size_t>(windows.last - windows.first) * kSquare * windows.step);
    float *inputs = mine.panel.get(kProducts * productStep_),
          *products = mine.tile.get(static_cast<size_t>(kProducts * some) * kRows * kPanel);
    for (size_t p = 0; p < plan.size(); ++p) {
      transformInputs<GradientTile<F>>(plan[p], source + static_cast<size_t>(g) * ocg_ * planes_.channel, off_.data(),
                                       ocg_, static_cast<ptrdiff_t>(productStep_), inputs);
      for (int b = b0; b < b1; b += some) {
        const int end = std::min(b + some, b1);
        filteredProducts<F>(blocks, b, end, ocg_, A_ + static_cast<size_t>(g) * icg_ * ocg_ * kProducts, inputs,
                            productStep_, products);
        for (int block = b; block < end; ++block)
          toWindows(products + static_cast<size_t>(blocks.start(block) - blocks.start(b)) * kProducts * kPanel,
                    blocks.start(block), blocks.size(block), windows, p * kPanel);
      }
    }
    return windows;
  }
  static void toWindows(const float* products, int channel, int rows, const Windows& to, size_t tile) {
    for (int m = 0; m < rows; ++m)
      for (int v = 0; v < kPanel; v += VL)
        alongBoth<F::kProducts, F::kInputs>(
            products + m * kPanel + v, static_cast<ptrdiff_t>(rows) * kPanel,
            [](const V* u, V* x) { F::inputsBack(u, x); },
            [&](int i, int j, V x) { store(to.of(channel + m, i * F::kInputs + j) + tile + v, x); });
  }

  // A plane of dx, of channel c of image i of a unit: number (2 y + r, 2 x + q) with the padding is the sum over (a, b) of
  // number (2 a + r, 2 b + q) of the window of tile (y - a, x - b).
  static constexpr int kReach = F::kInputs / 2;
  void addWindows(const Windows& windows, int c, int i, float* dx) const {
    const int columns = planes_.columns + kReach - 1;
    const ptrdiff_t step = static_cast<ptrdiff_t>(windows.step), down = 2 * F::kInputs * step - planes_.columns;
    const float* image = windows.of(c, 0) + static_cast<ptrdiff_t>(i) * tiles();
    for (int x = 0; x < columns; x += VL) {
      Mask meets[kReach];
      for (int b = 0; b < kReach; ++b) {
        const int from = std::clamp(b - x, 0, VL);
        meets[b] = lanes(from, std::clamp(planes_.columns + b - x, from, VL));
      }
      // Which numbers of two vectors side by side are in the input, and where the first one is.
      const int start = 2 * x - s_.padW, from = std::max(0, -start), count = std::min(2 * VL, s_.w - start) - from;
      alignas(64) float line[2 * VL];
      for (int h = 0; h < s_.h && count > 0; ++h) {
        const int y = (h + s_.padH) / 2, a = std::max(0, y - planes_.rows + 1);
        const float* first = image + (h + s_.padH) % 2 * F::kInputs * step + a * down + y * planes_.columns + x;
        V even, odd;
        sums(first, std::min(kReach, y + 1) - a, down, step, meets, even, odd);
        store(line, zipLow(even, odd)), store(line + VL, zipHigh(even, odd));
        copyRow(line + from, count, dx + static_cast<ptrdiff_t>(h) * s_.w + start + from);
      }
    }
  }
  // Of `count` rows of tiles, `down` floats apart: the windows' numbers of even columns, those of odd ones `step` behind.
  INL static void sums(const float* from, int count, ptrdiff_t down, ptrdiff_t step, const Mask* meets, V& even,
                       V& odd) {
    even = odd = zero();
    for (; count > 0; --count, from += down)
#pragma GCC unroll 4
      for (int b = 0; b < kReach; ++b) {
        const float* tile = from + b * (2 * step - 1);
        even = add(even, load(meets[b], tile)), odd = add(odd, load(meets[b], tile + step));
      }
  }

  Context& context_;
  const ConvShape& s_;
  const float* A_;
  Planes planes_;  // of dy
  int icg_, ocg_, unit_;
  size_t productStep_, image_;
  std::vector<int> off_;
  std::vector<PanelPlan> plan_, lastPlan_;
};

template <class F>
void winogradSpread(Context& context, const ConvShape& s, const float* dy, const float* w, float* dx) {
  constexpr int kTaps = F::kTaps * F::kTaps;
  int place[kTaps];
  for (int t = 0; t < kTaps; ++t) place[t] = t * (s.oc / s.groups);
  const float* A = packedToData<F>(context, {Packing::kToDataWinogradSpread, w, s}, s, w, place);
  WinogradSpread<F>(context, s, A).run(dy, dx);
}

}  // namespace crema::kernels::KNS
