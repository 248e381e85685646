// The gradient of the input of an unstrided convolution whose output is much smaller (no padding, large kernel): one
// product per tap and output position, then every input element sums its taps. Only needed products are computed;
// positions() would also compute those of padding, 2.25 times as many for 5 x 5 on 12 x 12. Enough channels of 3 x 3 or
// 5 x 5 are filtered (conv_winograd_spread.h). Cost: a buffer of taps, kept in the L2 cache by working on a few channels
// at a time.
//   tap[(i, a, b)][n, r, c] = sum_o w[o][i][a][b] dy[n][o][r][c]            one chain over o
//   dx[n][i][y][x] = sum_(a, b) tap[(i, a, b)][n, y + pad - a dil, x + pad - b dil]     in the order of (a, b)
namespace crema::kernels::KNS {

constexpr int kWidestTaps = 16;

inline bool addingTapsIsLess(const ConvShape& s) {
  return s.strideH == 1 && s.strideW == 1 && s.kw <= kWidestTaps && 2LL * s.h * s.w > 3LL * s.oh() * s.ow();
}

// dx [channels][h][w] of one image from tap [channels * kh * kw][ld].
inline void sumTaps(const ConvShape& s, int channels, const float* tap, ptrdiff_t ld, float* dx) {
  const int oh = s.oh(), ow = s.ow();
  Mask meets[kWidestTaps];  // lanes of a vector that tap b contributes to
  for (int x = 0; x < s.w; x += VL) {
    const Mask here = lanes(0, std::min(VL, s.w - x));
    for (int b = 0; b < s.kw; ++b) {
      const int first = b * s.dilW - s.padW - x, from = std::clamp(first, 0, VL);
      meets[b] = lanes(from, std::clamp(first + ow, from, VL));
    }
    for (int i = 0; i < channels; ++i)
      for (int y = 0; y < s.h; ++y) {
        V sum = zero();
        for (int a = 0; a < s.kh; ++a) {
          const int r = y + s.padH - a * s.dilH;
          if (r < 0 || r >= oh) continue;
          const float* t =
              tap + (static_cast<ptrdiff_t>(i) * s.kh + a) * s.kw * ld + static_cast<ptrdiff_t>(r) * ow + x + s.padW;
          for (int b = 0; b < s.kw; ++b, t += ld - s.dilW) sum = add(sum, load(meets[b], t));
        }
        store(here, dx + (static_cast<size_t>(i) * s.h + y) * s.w + x, sum);
      }
  }
}

// length: the plan, then what a thread does with a unit of images; they share every size above them.
inline void convBackwardDataByTaps(Context& context, const ConvShape& s, const float* dy, const float* w, float* dx) {
  constexpr int kRowsInCache = 448;
  const int P = s.oh() * s.ow(), icg = s.ic / s.groups, ocg = s.oc / s.groups, taps = s.kh * s.kw;
  const RowBlocks parts(icg, std::max(1, kRowsInCache / taps));
  auto& scratch = context.scratch();
  float* A = scratch.shared[kPackedWeights].get(static_cast<size_t>(s.ic) * taps * ocg + 1);
  for (int g = 0; g < s.groups; ++g)
    for (int part = 0; part < parts.count; ++part) {
      const int c0 = parts.start(part);
      const float* from = w + (static_cast<size_t>(g) * ocg * icg + c0) * taps;
      packRows(A + (static_cast<size_t>(g) * icg + c0) * taps * ocg, parts.size(part) * taps, ocg,
               [&](int m, int k) { return from[static_cast<size_t>(k) * icg * taps + m]; });
    }
  std::vector<int> off(static_cast<size_t>(ocg));
  for (int o = 0; o < ocg; ++o) off[static_cast<size_t>(o)] = o * P;
  const int unit = imagesPerUnit(P, s.n, context.pool().size());
  const auto planFor = [&](int images) {
    return planPanels(
        {.rows = 1, .columns = P, .images = images, .sourceImage = static_cast<ptrdiff_t>(s.oc) * P, .outImage = P},
        ocg);
  };
  const auto plan = planFor(unit), lastPlan = planFor(s.n % unit);
  const ptrdiff_t ld = static_cast<ptrdiff_t>(unit) * P;
  const size_t plane = static_cast<size_t>(s.h) * s.w;
  const int units = (s.n + unit - 1) / unit, tasks = s.groups * parts.count;  // per unit
  context.pool().run(units * tasks, [&](int t, int lane) {
    LaneScratch& mine = scratch.lane[static_cast<size_t>(lane)];
    const int n0 = t / tasks * unit, n = std::min(unit, s.n - n0), g = t % tasks / parts.count, part = t % parts.count;
    float* tap = mine.planes.get(static_cast<size_t>(parts.size(0)) * taps * static_cast<size_t>(ld));
    const int c0 = g * icg + parts.start(part), channels = parts.size(part);
    positions({.M = channels * taps,
               .K = ocg,
               .A = A + static_cast<size_t>(c0) * taps * ocg,
               .off = off.data(),
               .outM = ld,
               .plan = n == unit ? plan : lastPlan,
               .source = dy + (static_cast<size_t>(n0) * s.oc + static_cast<size_t>(g) * ocg) * P,
               .out = tap,
               .bias = nullptr,
               .mayReadInPlace = false},
              mine);
    for (int i = 0; i < n; ++i)
      sumTaps(s, channels, tap + static_cast<ptrdiff_t>(i) * P, ld,
              dx + (static_cast<size_t>(n0 + i) * s.ic + c0) * plane);
  });
}

}  // namespace crema::kernels::KNS
