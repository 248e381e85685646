// Convolution forward and the gradient of its input by minimal filtering (winograd.h): a panel of tiles is transformed,
// each product is a small matrix product over channels, and what comes back is finished while it is in the first cache.
// The gradient of the input is a convolution of dy with the filters turned by half a circle.
namespace crema::kernels::KNS {

// From [tap][count] to the products of each filter, [product][count]; count goes over channels and the rows of a tile.
template <class F>
void transformWeights(const float* from, size_t count, float* to) {
  for (size_t i = 0; i < count; i += VL) {
    const Mask here = lanes(0, static_cast<int>(std::min<size_t>(VL, count - i)));
    alongBoth<F::kTaps, F::kProducts>(
        from + i, static_cast<ptrdiff_t>(count), [](const V* g, V* u) { F::weights(g, u); },
        [&](int a, int b, V u) { store(here, to + static_cast<size_t>(a * F::kProducts + b) * count + i, u); });
  }
}

// Packed for M rows and C channels in each group: [group][block of rows][product][channel][row], `most` rows in a block.
// turn(m0, rows, to) gives the taps of a block as [tap][channel][row].
template <class F, class Turn>
float* packedProducts(Context& context, const Packing& packing, int groups, int M, int C, int most, const Turn& turn) {
  constexpr size_t kProducts = F::kProducts * F::kProducts, kTaps = F::kTaps * F::kTaps;
  const RowBlocks blocks(M, most);
  return context.scratch().packedWeights(packing, static_cast<size_t>(groups) * M * C * kProducts, [&](float* A) {
    context.pool().run(groups * blocks.count, [&](int t, int lane) {
      const int g = t / blocks.count, rows = blocks.size(t % blocks.count), m0 = blocks.start(t % blocks.count);
      const size_t count = static_cast<size_t>(C) * rows;
      float* taps = context.scratch().lane[static_cast<size_t>(lane)].transposed.get(count * kTaps);
      turn(g, m0, rows, taps);
      transformWeights<F>(taps, count, A + (static_cast<size_t>(g) * M + m0) * C * kProducts);
    });
  });
}

// Blocks [b0, b1) of rows: products of a panel, inputs [product][channel] productStep apart, and of the weights A of all
// rows, to [product][row][kPanel] of each block. A piece of the panel meets these blocks while the first cache holds it.
template <class F>
void filteredProducts(const RowBlocks& blocks, int b0, int b1, int channels, const float* A, const float* inputs,
                      size_t productStep, float* tiles) {
  constexpr int kProducts = F::kProducts * F::kProducts;
  for (int e = 0; e < kProducts; ++e)
    for (int k = 0; k < channels; k += kDepth) {
      const size_t first = static_cast<size_t>(e) * channels + k;
      const float* source[2] = {inputs + e * productStep + k * kPanel, nullptr};
      for (int b = b0; b < b1; ++b) {
        const int rows = blocks.size(b);
        const float* w = A + static_cast<size_t>(blocks.start(b)) * channels * kProducts + first * rows;
        float* to = tiles + (static_cast<size_t>(blocks.start(b) - blocks.start(b0)) * kProducts +
                             static_cast<size_t>(e * rows)) *
                                kPanel;
        gemmTileFor(kPacked, rows)(std::min(kDepth, channels - k), w, source, nullptr, to, kPanel, k > 0, nullptr,
                                   w + static_cast<ptrdiff_t>(std::min(kDepth, channels)) * rows, nullptr, nullptr);
      }
    }
}

// One convolution of `s`, of whose output the products are A.
template <class F>
struct WinogradCall {
  static constexpr int kProducts = F::kProducts * F::kProducts;
  const ConvShape& s;
  const float* A;
  WinogradOutputs out;
  int icg = s.ic / s.groups, ocg = s.oc / s.groups;
  // Between the products of a panel's inputs: a little more than they take, so that all products of a channel are not in the
  // same few places of a cache where that is a multiple of its size.
  size_t productStep = (static_cast<size_t>(icg) + 1) * kPanel, panelSize = kProducts * productStep;

  // Blocks [b0, b1) of rows of group g: the products of a panel, inputs [product][channel][kPanel], and its outputs.
  void someBlocks(const PanelPlan& p, int g, const RowBlocks& blocks, int b0, int b1, const float* inputs, int n0,
                  float* tiles) const {
    const auto rowsBefore = [&](int b) { return static_cast<size_t>(blocks.start(b) - blocks.start(b0)); };
    filteredProducts<F>(blocks, b0, b1, icg, A + static_cast<size_t>(g) * ocg * icg * kProducts, inputs, productStep,
                        tiles);
    for (int b = b0; b < b1; ++b)
      blockOutputs(p, g * ocg + blocks.start(b), blocks.size(b), n0, tiles + rowsBefore(b) * kProducts * kPanel);
  }
  void blockOutputs(const PanelPlan& p, int channel, int rows, int n0, const float* tile) const {
    alignas(64) WinogradOutputs::Lines line[kRows];
    for (int m = 0; m < rows; ++m) {
      V outputs[4][kWidth];
      const V plus = out.bias(channel + m);
      for (int v = 0; v < kWidth; ++v)
        alongBoth<F::kProducts, 2>(
            tile + m * kPanel + v * VL, static_cast<ptrdiff_t>(rows) * kPanel,
            [](const V* in, V* to) { F::outputs(in, to); },
            [&](int i, int j, V value) { outputs[2 * i + j][v] = add(value, plus); });
      out.lines(outputs, channel + m, line[m]);
    }
    out.write(out.placesOf(p), channel, rows, n0, line);
  }

  // Panel m0 / kPanel of outputs of group g for a panel of tiles (turned.h).
  static constexpr int kSquare = kPanel * kPanel;
  static constexpr size_t kTurnedScratch = static_cast<size_t>(kProducts + 8) * kSquare;
  void turnedBlock(const PanelPlan& p, int g, int m0, const float* inputs, float* mine) const {
    const float* weights = A + (static_cast<size_t>(g) * ocg + m0) * icg * kProducts;
    float *half = mine + kProducts * kSquare,
          *rows = half + 4 * kSquare;  // [2 x 2 outputs][tile][channel], [..][channel][tile]
    for (int e = 0; e < kProducts; ++e) {
      turnedProduct(p.length, icg, inputs + e * productStep, weights + static_cast<size_t>(e) * icg * kPanel, nullptr,
                    mine + e * kSquare);
    }
    for (int t = 0; t < p.length; ++t)
      for (int v = t * kPanel; v < (t + 1) * kPanel; v += VL)
        alongBoth<F::kProducts, 2>(
            mine + v, kSquare, [](const V* m, V* to) { F::outputs(m, to); },
            [&](int i, int j, V value) { store(half + (2 * i + j) * kSquare + v, value); });
    for (int i = 0; i < 4; ++i) toPanel(half + i * kSquare, kPanel, p.length, kPanel, rows + i * kSquare);
    alignas(64) WinogradOutputs::Lines line[kPanel];
    const int channel = g * ocg + m0;
    for (int m = 0; m < kPanel; ++m) {
      V outputs[4][kWidth];
      const V plus = out.bias(channel + m);
      for (int i = 0; i < 4; ++i)
        for (int v = 0; v < kWidth; ++v) outputs[i][v] = add(load(rows + i * kSquare + m * kPanel + v * VL), plus);
      out.lines(outputs, channel + m, line[m]);
    }
    out.write(out.placesOf(p), channel, kPanel, 0, line);
  }

  // Inputs of all panels of all groups, by all threads: [group][panel].
  const float* transformTogether(Context& context, const std::vector<PanelPlan>& plan, const Planes& planes,
                                 const float* source, const int* off) const {
    constexpr int kChannels = 8;
    const int panels = static_cast<int>(plan.size()), parts = (icg + kChannels - 1) / kChannels;
    float* inputs = context.scratch().shared[kSharedInput].get(panelSize * static_cast<size_t>(panels * s.groups));
    context.pool().run(s.groups * parts * panels, [&](int t, int) {
      const int p = t % panels, g = t / panels / parts, c0 = t / panels % parts * kChannels;
      transformInputs<F>(plan[static_cast<size_t>(p)], source + (static_cast<size_t>(g) * icg + c0) * planes.channel,
                         off, std::min(kChannels, icg - c0), static_cast<ptrdiff_t>(productStep),
                         inputs + panelSize * static_cast<size_t>(g * panels + p) + c0 * kPanel);
    });
    return inputs;
  }

  // How computeFew() goes: which thread transforms inputs, and whether tasks go panel after panel of a block of rows, so that
  // weights mostly meet all panels in one thread, or block after block of a panel.
  struct Course {
    bool own, keeps, byPanels;
  };
  Course courseOf(const Context::Scratch& scratch, int panels, int lanes, bool turned) const {
    constexpr size_t kHeld = 1 << 17;  // numbers, in half of any second cache
    const size_t inputs = panelSize * static_cast<size_t>(panels),
                 weights = static_cast<size_t>(kProducts) * static_cast<size_t>(ocg) * static_cast<size_t>(icg);
    // Weights stay in the caches and panels take the same time (turned, a panel takes as long as it has tiles).
    if (std::max(inputs, weights) <= kHeld) return {true, true, panels % lanes == 0 && !turned};
    if (lanes > kFewThreads) return {false, false, false};
    if (inputs <= scratch.secondCache * 5 / 8) return {true, true, false};
    // The weights, which are read again for each panel, are no more than the inputs that would be read for each block.
    const bool byPanels = panels >= 2 * lanes && weights * static_cast<size_t>(s.groups) <= inputs;
    return {byPanels, false, byPanels};
  }

  // All of one unit of images with too few panels for the threads to share: each takes rows, or panels, of outputs.
  void computeFew(Context& context, const std::vector<PanelPlan>& plan, const Planes& planes, const float* source,
                  const int* off, bool turned) const {
    auto& scratch = context.scratch();
    const RowBlocks blocks(ocg, turned ? kPanel : kRows);
    const int panels = static_cast<int>(plan.size()), all = panels * s.groups;
    const Course course = courseOf(scratch, all, context.pool().size(), turned);
    const float* shared = course.own ? nullptr : transformTogether(context, plan, planes, source, off);
    OwnInputs own(context, panelSize, all, course.keeps);
    // A thread has tasks side by side.
    context.pool().run(blocks.count * all, [&](int t, int lane) {
      const int g = t / panels / blocks.count, rest = t % (panels * blocks.count),
                b = course.byPanels ? rest % blocks.count : rest / panels,
                p = course.byPanels ? rest / blocks.count : rest % panels, which = g * panels + p;
      const PanelPlan& panel = plan[static_cast<size_t>(p)];
      const auto transform = [&](float* to) {
        transformInputs<F>(panel, source + static_cast<size_t>(g) * icg * planes.channel, off, icg,
                           static_cast<ptrdiff_t>(productStep), to);
      };
      const float* inputs = shared ? shared + panelSize * static_cast<size_t>(which) : own.get(lane, which, transform);
      float* tile = scratch.lane[static_cast<size_t>(lane)].tile.get(
          turned ? kTurnedScratch : static_cast<size_t>(kProducts) * kRows * kPanel);
      turned ? turnedBlock(panel, g, blocks.start(b), inputs, tile)
             : someBlocks(panel, g, blocks, b, b + 1, inputs, 0, tile);
    });
  }

  // Part `part` of `of` of a unit of images whose first one is n0, in group g: panels where there are enough, else rows.
  void compute(const std::vector<PanelPlan>& plan, const float* source, const int* off, int n0, int g, int part, int of,
               LaneScratch& mine) const {
    const RowBlocks blocks(ocg);
    // So many panels meet a block of weights together as fit into half of the second cache.
    const int all = static_cast<int>(plan.size()),
              together = std::clamp<int>((1 << 17) / static_cast<int>(panelSize), 1, 8);
    const bool byPanels = all >= 2 * of;
    const int first = byPanels ? all * part / of : 0, last = byPanels ? all * (part + 1) / of : all;
    const int block0 = byPanels ? 0 : blocks.count * part / of,
              block1 = byPanels ? blocks.count : blocks.count * (part + 1) / of;
    if (block0 == block1) return;
    float* inputs = mine.panel.get(panelSize * static_cast<size_t>(together));
    const int some = icg > kDepth ? kRowBlocks : 1;
    float* tiles = mine.tile.get(static_cast<size_t>(kProducts * some) * kRows * kPanel);
    for (int p0 = first; p0 < last; p0 += together) {
      const int panels = std::min(together, last - p0);
      for (int i = 0; i < panels; ++i)
        transformInputs<F>(plan[static_cast<size_t>(p0 + i)], source, off, icg, static_cast<ptrdiff_t>(productStep),
                           inputs + panelSize * static_cast<size_t>(i));
      for (int b = block0; b < block1; b += some)
        for (int i = 0; i < panels; ++i)
          someBlocks(plan[static_cast<size_t>(p0 + i)], g, blocks, b, std::min(b + some, block1),
                     inputs + panelSize * static_cast<size_t>(i), n0, tiles);
    }
  }
};

inline bool winogradTurns(const ConvShape& s) {
  return turns(s.n * ((s.oh() + 1) / 2) * ((s.ow() + 1) / 2), s.oc / s.groups);
}

// turned: A is packed in blocks of kPanel rows.
template <class F>
void convByWinograd(Context& context, const ConvShape& s, const float* x, const float* A, const float* bias, float* y,
                    const Epilogue<float>& then, bool turned) {
  const Planes planes = winogradPlanes(s);
  const int tileRows = (s.oh() + 1) / 2, tiles = tileRows * ((s.ow() + 1) / 2), icg = s.ic / s.groups;
  const std::vector<int> off = winogradOffsets<F>(planes, icg);
  const int unit = turned ? s.n : imagesPerUnit(tiles, s.n, context.pool().size()), units = (s.n + unit - 1) / unit,
            parts = partsOfUnit(context.pool().size(), units);
  const auto plan = planPanels(winogradMap(s, planes, tileRows, unit), 0),
             lastPlan = planPanels(winogradMap(s, planes, tileRows, s.n % unit), 0);
  const size_t image = planes.channel * s.ic, input = static_cast<size_t>(s.ic) * s.h * s.w;
  auto& scratch = context.scratch();
  const bool few = turned || (units == 1 && parts > 1 && static_cast<int>(plan.size()) < 2 * parts);
  float* all = parts > 1 || few ? scratch.shared[kSharedPlanes].get(image * static_cast<size_t>(s.n)) : nullptr;
  if (all) buildTogether(context, s, planes, s.n, x, all);
  const WinogradCall<F> call{s, A, WinogradOutputs(s, bias, y, then)};
  if (few) return call.computeFew(context, plan, planes, all, off.data(), turned);
  context.pool().run(units * parts, [&](int t, int lane) {
    LaneScratch& mine = scratch.lane[static_cast<size_t>(lane)];
    const int n0 = t / parts * unit, n = std::min(unit, s.n - n0);
    float* source = all ? all + static_cast<size_t>(n0) * image : mine.planes.get(image * static_cast<size_t>(unit));
    for (int i = 0; i < n && !all; ++i) planes.build(x + (n0 + i) * input, s.ic, source + i * image);
    eachGroup(s.groups, t % parts, parts, [&](int g, int part, int of) {
      call.compute(n == unit ? plan : lastPlan, source + static_cast<size_t>(g) * icg * planes.channel, off.data(), n0,
                   g, part, of, mine);
    });
  });
}

template <class F>
void winogradForward(Context& context, const ConvShape& s, const float* x, const float* w, const float* bias, float* y,
                     const Epilogue<float>& then) {
  constexpr int kTaps = F::kTaps * F::kTaps;
  const int icg = s.ic / s.groups, ocg = s.oc / s.groups;
  std::vector<int> place(static_cast<size_t>(icg) * kTaps);
  for (int i = 0; i < icg; ++i)
    for (int t = 0; t < kTaps; ++t) place[static_cast<size_t>(i * kTaps + t)] = t * icg + i;
  const bool turned = winogradTurns(s);
  const Packing packing{turned ? Packing::kWinogradTurned : Packing::kForwardWinograd, w, s};
  const float* A = packedProducts<F>(
      context, packing, s.groups, ocg, icg, turned ? kPanel : kRows, [&](int g, int m0, int rows, float* to) {
        const int K = icg * kTaps;
        packTransposed(w + (static_cast<size_t>(g) * ocg + m0) * K, K, rows, K, place.data(), to);
      });
  convByWinograd<F>(context, s, x, A, bias, y, then, turned);
}

// The products of filters whose rows are input channels; place: of each tap, times the output channels.
template <class F>
const float* packedToData(Context& context, const Packing& packing, const ConvShape& s, const float* w,
                          const int* place) {
  constexpr int kTaps = F::kTaps * F::kTaps;
  const int icg = s.ic / s.groups, ocg = s.oc / s.groups;
  return packedProducts<F>(context, packing, s.groups, icg, ocg, kRows, [&](int g, int m0, int rows, float* to) {
    const float* from = w + (static_cast<size_t>(g) * ocg * icg + m0) * kTaps;
    for (int o = 0; o < ocg; ++o, from += static_cast<size_t>(icg) * kTaps)
      packTransposed(from, kTaps, rows, kTaps, place, to + static_cast<ptrdiff_t>(o) * rows);
  });
}

template <class F>
void winogradBackwardData(Context& context, const ConvShape& s, const float* dy, const float* w, float* dx) {
  constexpr int kTaps = F::kTaps * F::kTaps;
  int place[kTaps];
  for (int t = 0; t < kTaps; ++t) place[t] = (kTaps - 1 - t) * (s.oc / s.groups);
  const float* A = packedToData<F>(context, {Packing::kToDataWinograd, w, s}, s, w, place);
  convByWinograd<F>(context, winogradBack(s), dy, A, nullptr, dx, {}, false);
}

}  // namespace crema::kernels::KNS
