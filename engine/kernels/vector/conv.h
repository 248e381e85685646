// Convolution forward and the gradient of its input, on positions().
namespace crema::kernels::KNS {

// A convolution of 1 x 1 of so few positions that panels go over outputs (turned.h).
inline void convTurned(Context& context, const ConvShape& s, const Planes& planes, const std::vector<int>& off,
                       const std::vector<PanelPlan>& plan, const float* x, const float* w, const float* bias, float* y,
                       const Epilogue<float>& then) {
  const int icg = s.ic / s.groups, ocg = s.oc / s.groups, outputs = s.oh() * s.ow();
  const float* A = context.scratch().packedWeights({Packing::kForwardTurned, w, s}, static_cast<size_t>(s.oc) * icg,
                                                   [&](float* to) { packTurned(context, s, w, to); });
  const size_t image = planes.channel * s.ic;
  float* copy = planes.plain ? nullptr : context.scratch().shared[kSharedPlanes].get(image * static_cast<size_t>(s.n));
  if (copy) buildTogether(context, s, planes, s.n, x, copy);
  for (int g = 0; g < s.groups; ++g) {
    const ptrdiff_t start = static_cast<ptrdiff_t>(g) * ocg * outputs;
    turnedPositions(context, {.M = ocg,
                              .K = icg,
                              .A = A + static_cast<size_t>(g) * ocg * icg,
                              .off = off.data(),
                              .outM = outputs,
                              .plan = plan,
                              .source = (copy ? copy : x) + static_cast<size_t>(g) * icg * planes.channel,
                              .out = y + start,
                              .bias = bias ? bias + g * ocg : nullptr,
                              .mayReadInPlace = false,
                              .then = then.empty() ? nullptr : &then,
                              .channel = g * ocg,
                              .outStart = start});
  }
}

// length: the plan of panels, then what a thread does with a unit of images; they share every size above them.
inline void convForward(Context& context, const ConvShape& s, const float* x, const float* w, const float* bias,
                        float* y, const Epilogue<float>& then) {
  const int oh = s.oh(), ow = s.ow(), icg = s.ic / s.groups, ocg = s.oc / s.groups, K = icg * s.kh * s.kw;
  if (s.n == 0 || s.oc == 0) return;
  if (isDepthwise(s)) return depthwiseForward(context, s, x, w, bias, y, then);
  const int filtered = winogradTaps(s);
  if (filtered == 3) return winogradForward<ThreeTaps>(context, s, x, w, bias, y, then);
  if (filtered == 5) return winogradForward<FiveTaps>(context, s, x, w, bias, y, then);
  const Planes planes(s, true);
  std::vector<int> off(static_cast<size_t>(K));  // order of k: (kernel row, channel, kernel column)
  for (int a = 0, k = 0; a < s.kh; ++a)
    for (int i = 0; i < icg; ++i)
      for (int b = 0; b < s.kw; ++b) off[static_cast<size_t>(k++)] = planes.off(i, a, b);
  const bool trim = s.padH > 0 && oh <= 14;
  std::vector<int> range;
  for (int r = 0; trim && r < oh; ++r) {  // kernel rows a with 0 <= r * stride + a * dilation - pad < h
    const int first = r * s.strideH - s.padH;
    range.push_back(first >= 0 ? 0 : std::min(s.kh, (-first + s.dilH - 1) / s.dilH));
    range.push_back(s.h - first <= 0 ? 0 : std::min(s.kh, (s.h - 1 - first) / s.dilH + 1));
  }
  auto& scratch = context.scratch();
  const size_t image = planes.channel * s.ic, input = static_cast<size_t>(s.ic) * s.h * s.w;
  const int unit = trim ? imagesPerTrimmedUnit(oh * ow, ow, s.n) : imagesPerUnit(oh * ow, s.n, context.pool().size());
  const auto planFor = [&](int images) {
    return planPanels({.rows = oh,
                       .columns = ow,
                       .images = images,
                       .sourceImage = static_cast<ptrdiff_t>(image),
                       .sourceRow = planes.columns,
                       .outImage = static_cast<ptrdiff_t>(s.oc) * oh * ow,
                       .outRow = ow,
                       .range = trim ? range.data() : nullptr,
                       .kPerRow = icg * s.kw},
                      K);
  };
  if (K > 0 && K == icg && !trim && turns(s.n * oh * ow, ocg))
    return convTurned(context, s, planes, off, planFor(s.n), x, w, bias, y, then);
  const float* A = context.scratch().packedWeights({Packing::kForward, w, s}, static_cast<size_t>(s.oc) * K,
                                                   [&](float* to) { packForwardWeights(context, s, w, to); });
  const Step<float>* adds = nullptr;
  for (const Step<float>& step : then)
    if (step.kind == Step<float>::kAdd) adds = &step;
  const auto plan = planFor(unit), lastPlan = planFor(s.n % unit);
  const int units = (s.n + unit - 1) / unit, parts = partsOfUnit(context.pool().size(), units);
  const bool together = parts > 1 && !planes.plain;
  float* all = together ? scratch.shared[kSharedPlanes].get(image * static_cast<size_t>(s.n)) : nullptr;
  if (together) buildTogether(context, s, planes, s.n, x, all);
  context.pool().run(units * parts, [&](int t, int lane) {
    LaneScratch& mine = scratch.lane[static_cast<size_t>(lane)];
    const int n0 = t / parts * unit, n = std::min(unit, s.n - n0);
    const float* source = together ? all + static_cast<size_t>(n0) * image : x + n0 * input;
    if (!planes.plain && !together) {
      float* copy = mine.planes.get(image * static_cast<size_t>(unit));
      for (int i = 0; i < n; ++i) planes.build(source + i * input, s.ic, copy + i * image);
      source = copy;
    }
    eachGroup(s.groups, t % parts, parts, [&](int g, int part, int of) {
      const ptrdiff_t start = (static_cast<ptrdiff_t>(n0) * s.oc + static_cast<ptrdiff_t>(g) * ocg) * oh * ow;
      positions({.M = ocg,
                 .K = K,
                 .A = A + static_cast<size_t>(g) * ocg * K,
                 .off = off.data(),
                 .outM = static_cast<ptrdiff_t>(oh) * ow,
                 .plan = n == unit ? plan : lastPlan,
                 .source = source + static_cast<size_t>(g) * icg * planes.channel,
                 .out = y + start,
                 .bias = bias ? bias + g * ocg : nullptr,
                 .isCopy = !planes.plain,
                 .mayReadInPlace = ocg <= (s.kw > 1 ? 64 : 16),
                 .then = then.empty() ? nullptr : &then,
                 .channel = g * ocg,
                 .outStart = start,
                 .adds = adds,
                 .streams = K <= kDepth && isStreamed(y, static_cast<size_t>(s.n) * s.oc, oh * ow)},
                mine, part, of);
    });
  });
}

// Per stride phase and group: rows are input channels, k goes over kernel rows, output channels, kernel columns.
inline void packBackWeights(Context& context, const ConvShape& s, const BackPlan& p, const float* w, float* A) {
  const int icg = s.ic / s.groups, ocg = s.oc / s.groups, taps = s.kh * s.kw;
  for (const BackPhase& f : p.phases) {
    std::vector<int> place(static_cast<size_t>(taps), -1);
    for (int j = 0; j < f.tapsH; ++j)
      for (int l = 0; l < f.tapsW; ++l)
        place[static_cast<size_t>((f.r + j * s.strideH) * s.kw + f.q + l * s.strideW)] = j * ocg * f.tapsW + l;
    eachRowBlock(context, int64_t{s.oc} * icg * taps < (1 << 15), s.groups, icg, [&](int g, int m0, int rows) {
      float* to = A + f.weights + (static_cast<size_t>(g) * icg + m0) * f.K;
      const float* from = w + (static_cast<size_t>(g) * ocg * icg + m0) * taps;
      for (int o = 0; o < ocg; ++o, from += static_cast<size_t>(icg) * taps)
        packTransposed(from, taps, rows, taps, place.data(), to + static_cast<ptrdiff_t>(o) * f.tapsW * rows);
    });
  }
}

// A plane [h][w] from [oh][ow], zeros between its numbers.
inline void spreadPlane(const ConvShape& s, const float* from, float* to) {
  const int ow = s.ow();
  std::memset(to, 0, static_cast<size_t>(s.h) * s.w * 4);
  for (int y = 0; y < s.oh(); ++y, from += ow) {
    float* row = to + static_cast<ptrdiff_t>(y) * s.strideH * s.w;
    if (s.strideW == 2)
      zipRow(from, nullptr, 2 * ow - 1, row);
    else
      for (int x = 0; x < ow; ++x) row[static_cast<ptrdiff_t>(x) * s.strideW] = from[x];
  }
}

// 1 x 1 with a stride: without it first, as numbers that lie apart are stored one by one.
inline void convBackwardData(Context& context, const ConvShape& s, const float* dy, const float* w, float* dx);
inline void stridedSingleTapToData(Context& context, const ConvShape& s, const float* dy, const float* w, float* dx) {
  ConvShape dense = s;
  dense.h = s.oh(), dense.w = s.ow(), dense.strideH = dense.strideW = 1;
  const size_t in = static_cast<size_t>(s.h) * s.w, out = static_cast<size_t>(dense.h) * dense.w;
  float* between = context.scratch().shared[kSharedTransposed].get(static_cast<size_t>(s.n) * s.ic * out);
  convBackwardData(context, dense, dy, w, between);
  eachPlanes(context, s.n * s.ic, s.h * s.w, [&](int first, int last, int) {
    for (int i = first; i < last; ++i)
      spreadPlane(s, between + static_cast<size_t>(i) * out, dx + static_cast<size_t>(i) * in);
  });
}

// length: the plan of panels, then what a thread does with a unit of images; they share every size above them.
inline void convBackwardData(Context& context, const ConvShape& s, const float* dy, const float* w, float* dx) {
  // Stride and dilation along the same axis, which no known net uses.
  const bool declined = (s.strideH > 1 && s.dilH > 1) || (s.strideW > 1 && s.dilW > 1);
  if (declined) return kFloatReference.convBackwardData(context, s, dy, w, dx);
  const int oh = s.oh(), ow = s.ow(), icg = s.ic / s.groups, ocg = s.oc / s.groups;
  if (s.n == 0 || s.ic == 0) return;
  if (isDepthwise(s)) return depthwiseBackwardData(context, s, dy, w, dx);
  if (s.kh == 1 && s.kw == 1 && s.strideW > 1 && s.padH == 0 && s.padW == 0)
    return stridedSingleTapToData(context, s, dy, w, dx);
  const int spread = winogradSpreadTaps(s);
  if (spread == 3) return winogradSpread<ThreeTaps>(context, s, dy, w, dx);
  if (spread == 5) return winogradSpread<FiveTaps>(context, s, dy, w, dx);
  if (addingTapsIsLess(s)) return convBackwardDataByTaps(context, s, dy, w, dx);
  const int filtered = winogradBackTaps(s);
  if (filtered == 3) return winogradBackwardData<ThreeTaps>(context, s, dy, w, dx);
  if (filtered == 5) return winogradBackwardData<FiveTaps>(context, s, dy, w, dx);
  const BackPlan p = planBack(s);
  auto& scratch = context.scratch();
  const float* A = context.scratch().packedWeights({Packing::kToData, w, s}, p.weights + 1,
                                                   [&](float* to) { packBackWeights(context, s, p, w, to); });
  const int perImage = s.h * s.w / (s.strideH * s.strideW), columns = s.w / s.strideW;
  const bool trim = s.kh > 1 && s.h / s.strideH <= 14;
  const int unit = trim ? imagesPerTrimmedUnit(std::max(1, perImage), columns, s.n)
                        : imagesPerUnit(std::max(1, perImage), s.n, context.pool().size());
  const size_t image = p.channel * s.oc, input = static_cast<size_t>(s.ic) * s.h * s.w,
               output = static_cast<size_t>(s.oc) * oh * ow;
  const auto planFor = [&](const BackPhase& f, int images) {
    if (f.rows == 0) return std::vector<PanelPlan>();
    return planPanels({.rows = f.rows,
                       .columns = f.columns,
                       .images = images,
                       .sourceImage = static_cast<ptrdiff_t>(p.plain ? output : image),
                       .sourceRow = p.plain ? ow : p.columns,
                       .outImage = static_cast<ptrdiff_t>(input),
                       .outRow = static_cast<ptrdiff_t>(s.strideH) * s.w,
                       .outColumn = s.strideW,
                       .range = trim ? f.range.data() : nullptr,
                       .kPerRow = ocg * f.tapsW},
                      f.K);
  };
  std::vector<std::vector<PanelPlan>> plan, lastPlan;
  for (const BackPhase& f : p.phases) plan.push_back(planFor(f, unit)), lastPlan.push_back(planFor(f, s.n % unit));
  const int units = (s.n + unit - 1) / unit, parts = partsOfUnit(context.pool().size(), units);
  const bool together = parts > 1 && !p.plain;
  float* all = together ? scratch.shared[kSharedPlanes].get(image * static_cast<size_t>(s.n)) : nullptr;
  if (together)
    buildTogether(context, s.n, s.oc, [&](int i, int c0, int channels) {
      padGradient(s, p, dy + i * output + static_cast<size_t>(c0) * oh * ow, channels,
                  all + i * image + c0 * p.channel);
    });
  if (!p.whole)
    context.pool().run(s.n, [&](int i, int) { std::memset(dx + static_cast<size_t>(i) * input, 0, input * 4); });
  context.pool().run(units * parts, [&](int t, int lane) {
    LaneScratch& mine = scratch.lane[static_cast<size_t>(lane)];
    const int n0 = t / parts * unit, n = std::min(unit, s.n - n0);
    const float* source = together ? all + static_cast<size_t>(n0) * image : dy + n0 * output;
    if (!p.plain && !together) {
      float* copy = mine.planes.get(image * static_cast<size_t>(unit));
      padGradient(s, p, source, n * s.oc, copy);
      source = copy;
    }
    for (size_t i = 0; i < p.phases.size(); ++i)
      if (p.phases[i].rows > 0)
        eachGroup(s.groups, t % parts, parts, [&](int g, int part, int of) {
          const BackPhase& f = p.phases[i];
          float* to = dx + n0 * input + static_cast<size_t>(g) * icg * s.h * s.w + static_cast<size_t>(f.startH) * s.w +
                      f.startW;
          positions({.M = icg,
                     .K = f.K,
                     .A = A + f.weights + static_cast<size_t>(g) * icg * f.K,
                     .off = f.off.data(),
                     .outM = static_cast<ptrdiff_t>(s.h) * s.w,
                     .plan = n == unit ? plan[i] : lastPlan[i],
                     .source = source + static_cast<size_t>(g) * ocg * p.channel,
                     .out = to,
                     .bias = nullptr,
                     .isCopy = !p.plain,
                     .mayReadInPlace = icg <= 16},
                    mine, part, of);
        });
  });
}

}  // namespace crema::kernels::KNS
