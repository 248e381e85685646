// The gradient of the weights of a convolution with a filter for each channel (conv_depthwise.h): dot products of shifted
// planes.
namespace crema::kernels::KNS {

constexpr int kChains = 32;  // of a sum over positions, on every instruction set

// sums[t] += sum_q dy[q] x[t][q] for q < count, a multiple of kChains: position q on chain q % kChains, then a binary tree.
template <int T>
void dotShifts(const float* dy, const float* const* x, int count, double* sums) {
  constexpr int kVectors = kChains / VL;
  V acc[T][kVectors];
  for (int t = 0; t < T; ++t)
    for (int v = 0; v < kVectors; ++v) acc[t][v] = zero();
  for (int q = 0; q < count; q += kChains)
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const V d = load(dy + q + v * VL);
#pragma GCC unroll 3
      for (int t = 0; t < T; ++t) acc[t][v] = fma(d, load(x[t] + q + v * VL), acc[t][v]);
    }
  for (int t = 0; t < T; ++t) {
    alignas(64) float chain[VL];
    for (int half = kVectors / 2; half; half /= 2)
      for (int v = 0; v < half; ++v) acc[t][v] = add(acc[t][v], acc[t][v + half]);
    store(chain, acc[t][0]);
    for (int half = VL / 2; half; half /= 2)
      for (int i = 0; i < half; ++i) chain[i] += chain[i + half];
    sums[t] += static_cast<double>(chain[0]);
  }
}

// The same for all taps of one plane and its gradient.
inline void addDots(const Planes& planes, const ConvShape& s, const float* plane, const float* gradient, int count,
                    double* sums) {
  const int taps = s.kh * s.kw;
  for (int k = 0; k < taps; k += 3) {
    const float* shifted[3];
    for (int t = 0; t < std::min(3, taps - k); ++t) shifted[t] = plane + planes.off(0, (k + t) / s.kw, (k + t) % s.kw);
    if (taps - k >= 3)
      dotShifts<3>(gradient, shifted, count, sums + k);
    else
      taps - k == 2 ? dotShifts<2>(gradient, shifted, count, sums + k)
                    : dotShifts<1>(gradient, shifted, count, sums + k);
  }
}

// Some channels, which lie side by side in memory, are a task; a channel's images are added in turn, in double.
inline void depthwiseBackwardWeights(Context& context, const ConvShape& s, const float* x, const float* dy, float* dw,
                                     bool accumulate) {
  if (readsRowsForWeights(s))
    return s.strideW == 1 ? depthwiseWeightRows<1>(context, s, x, dy, dw, accumulate)
                          : depthwiseWeightRows<2>(context, s, x, dy, dw, accumulate);
  const Planes planes(s, false);
  const int oh = s.oh(), ow = s.ow(), taps = s.kh * s.kw, columns = planes.columns,
            count = (oh * columns + kChains - 1) / kChains * kChains;
  const int together = planesTogether(planes.channel);
  const size_t each = planes.channel + beyond(columns), both = each + static_cast<size_t>(count);
  context.pool().run((s.ic + together - 1) / together, [&](int t, int lane) {
    const int c0 = t * together, some = std::min(together, s.ic - c0);
    float* mine = context.scratch().lane[static_cast<size_t>(lane)].planes.get(both * static_cast<size_t>(some));
    std::memset(mine, 0, both * static_cast<size_t>(some) * 4);  // what meets these zeros is a number as well
    std::vector<double> sums(static_cast<size_t>(taps * some), 0.0);
    for (int n = 0; n < s.n; ++n) {
      const size_t i = static_cast<size_t>(n) * s.ic + static_cast<size_t>(c0);
      for (int j = 0; j < some; ++j) {
        float *plane = mine + both * static_cast<size_t>(j), *gradient = plane + each;
        const float* from = dy + (i + static_cast<size_t>(j)) * oh * ow;
        fillPlane(s, planes, x + (i + static_cast<size_t>(j)) * s.h * s.w, plane);
        for (int r = 0; r < oh; ++r, from += ow, gradient += columns) copyRow(from, ow, gradient);
      }
      for (int j = 0; j < some; ++j) {
        const float* plane = mine + both * static_cast<size_t>(j);
        addDots(planes, s, plane, plane + each, count, sums.data() + j * taps);
      }
    }
    float* d = dw + static_cast<size_t>(c0) * taps;
    for (size_t k = 0; k < sums.size(); ++k) d[k] = static_cast<float>(accumulate ? d[k] + sums[k] : sums[k]);
  });
}

}  // namespace crema::kernels::KNS
