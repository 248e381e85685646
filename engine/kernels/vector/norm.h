// Kernels of norm.h: a channel is a task, and its numbers stay in the thread's cache between its passes.
namespace crema::kernels::KNS {

// `rows` of `inner` numbers, `stride` apart: those of a channel.
struct ChannelRows {
  int64_t first, stride;
  int rows, inner;
  ChannelRows(const ChannelShape& s, int c)
      : first(int64_t{c} * s.inner), stride(int64_t{s.channels} * s.inner), rows(s.outer), inner(s.inner) {}

  // Asks for what comes some thousand numbers after place i of a row, which lies at `at`: no processor foresees the next row,
  // and none looks far enough ahead for all that a number goes through here.
  INL void ahead(const float* at, int i) const {
    constexpr int kAhead = 1024;
    const int part = kAhead % inner;
    __builtin_prefetch(at + kAhead / inner * stride + (i + part < inner ? part : part - inner + stride));
  }

  // to[i] = of(mask, i) for all of them, a vector at a time; past the caches, if the blob is such a one (isStreamed()).
  template <class Of>
  INL void write(float* to, bool streams, Of of) const {
    for (int o = 0; o < rows; ++o) {
      const int64_t row = first + o * stride;
      int i = 0;
      for (; i + VL <= inner; i += VL) {
        const V v = of(lanes(0, VL), row + i);
        if (streams)
          stream(to + row + i, v);
        else
          store(to + row + i, v);
      }
      if (i < inner) store(lanes(0, inner - i), to + row + i, of(lanes(0, inner - i), row + i));
    }
    if (streams) drain();
  }
};

// VL numbers of a row, or the last ones: which, and eights of them without what is not there.
struct WholeVector {
  INL Mask mask() const { return lanes(0, VL); }
  INL D8 only(int, D8 a) const { return a; }
};
struct LastVector {
  int count;
  INL Mask mask() const { return lanes(0, count); }
  INL D8 only(int j, D8 a) const { return first(std::clamp(count - 8 * j, 0, 8), a); }
};
constexpr int kEights = VL / 8;  // of a vector

// K sums over the numbers of a channel, each with the chains of sumChannels(). add(at, i, chains) adds the terms of a vector
// of numbers from i on to chains[k * kSumChains / 8 + j], j < kEights. They are the blobs' that are `read`.
template <int K, class Add>
INL void totals(const ChannelRows& channel, std::initializer_list<const float*> read, double* sums, Add add) {
  constexpr int kAll = kSumChains / 8;
  D8 chain[K * kAll];
  for (D8& c : chain) c = set8(0);
  for (int o = 0; o < channel.rows; ++o) {
    const int64_t row = channel.first + o * channel.stride;
    int i = 0;
    for (; i + kSumChains <= channel.inner; i += kSumChains) {
      for (const float* blob : read) channel.ahead(blob + row + i, i);
      for (int v = 0; v < kSumChains; v += VL) add(WholeVector(), row + i + v, chain + v / 8);
    }
    for (int v = 0; i < channel.inner; v += VL, i += VL) {
      const int rest = channel.inner - i;
      rest < VL ? add(LastVector{rest}, row + i, chain + v / 8) : add(WholeVector(), row + i, chain + v / 8);
    }
  }
  for (int k = 0; k < K; ++k) {
    SumChains of;
    for (int h = 0; h < kAll; ++h) of.eight[h] = chain[k * kAll + h];
    sums[k] = of.sum();
  }
}

// What a channel's numbers go through, in registers.
template <bool SCALED, bool RECTIFIED>
struct NormChannel {
  V minus, times, scale, offset, slope;
  NormChannel(const NormSteps<float>& s, int c, double mean, double factor)
      : minus(set1(static_cast<float>(-mean))),
        times(set1(static_cast<float>(factor))),
        scale(set1(SCALED ? s.scale[c] : 1.f)),
        offset(set1(SCALED && s.offset ? s.offset[c] : 0.f)),
        slope(set1(s.slope)) {}
  INL V normal(V x) const { return fma(add(x, minus), times, zero()); }
  INL V scaled(V v) const { return SCALED ? fma(add(v, zero()), scale, offset) : v; }
  INL V forward(V x) const {
    const V z = scaled(normal(x));
    return RECTIFIED ? select(greater(z, zero()), z, mul(z, slope)) : z;
  }
  INL V rectifierBack(V v, V dy) const {
    return RECTIFIED ? select(greater(scaled(v), zero()), dy, mul(dy, slope)) : dy;
  }
  INL V scaleBack(V dz) const { return SCALED ? fma(add(dz, zero()), scale, zero()) : dz; }
};

// use(steps' NormChannel) as a template for the steps that there are.
template <class Use>
void withNormSteps(const NormSteps<float>& s, Use use) {
  if (s.scaled && s.rectified) return use.template operator()<true, true>();
  if (s.scaled) return use.template operator()<true, false>();
  if (s.rectified) return use.template operator()<false, true>();
  use.template operator()<false, false>();
}

inline void normForward(Context& context, const ChannelShape& s, double eps, const float* x,
                        const NormSteps<float>& steps, float* y, const NormNumbers& to) {
  const double m = std::max(1.0, double(s.outer) * s.inner);
  const bool streams = isStreamed(y, static_cast<size_t>(s.outer) * static_cast<size_t>(s.channels), s.inner);
  withNormSteps(steps, [&]<bool SCALED, bool RECTIFIED>() {
    context.pool().run(s.channels, [&](int c, int) {
      const ChannelRows channel(s, c);
      D8 some[kEights];
      double sum;
      totals<1>(
          channel, {x}, &sum, [&](auto at, int64_t i, D8* chain) __attribute__((always_inline)) {
            widen(load(at.mask(), x + i), some);
            for (int j = 0; j < kEights; ++j) chain[j] = chain[j] + some[j];
          });
      const double mean = sum / m;
      const D8 shift = set8(mean);
      totals<1>(
          channel, {}, &sum, [&](auto at, int64_t i, D8* chain) __attribute__((always_inline)) {
            widen(load(at.mask(), x + i), some);
            for (int j = 0; j < kEights; ++j) {
              const D8 d = at.only(j, some[j] - shift);
              chain[j] = fma8(d, d, chain[j]);
            }
          });
      to.mean[c] = mean, to.variance[c] = sum / m, to.factor[c] = 1 / std::sqrt(to.variance[c] + eps);
      const NormChannel<SCALED, RECTIFIED> of(steps, c, mean, to.factor[c]);
      channel.write(y, streams, [&](Mask mask, int64_t i) { return of.forward(load(mask, x + i)); });
    });
  });
}

// length: constants of a channel, its sums, its dx; they share all of them.
inline void normBackward(Context& context, const ChannelShape& s, const float* x, const NormNumbers& numbers,
                         const NormSteps<float>& steps, const float* dy, float* dx, const NormSums& to) {
  const double m = std::max(1.0, double(s.outer) * s.inner);
  withNormSteps(steps, [&]<bool SCALED, bool RECTIFIED>() {
    context.pool().run(s.channels, [&](int c, int) {
      const ChannelRows channel(s, c);
      const double r = numbers.factor[c];
      const NormChannel<SCALED, RECTIFIED> of(steps, c, numbers.mean[c], r);
      const D8 shift = set8(numbers.mean[c]);
      double sums[4];
      totals<SCALED ? 4 : 2>(
          channel, {x, dy}, sums, [&](auto at, int64_t i, D8* chain) __attribute__((always_inline)) {
            constexpr int kNext = kSumChains / 8;  // from sum to sum
            const V in = load(at.mask(), x + i), v = of.normal(in), z = of.rectifierBack(v, load(at.mask(), dy + i));
            D8 wide[4][kEights];
            widen(of.scaleBack(z), wide[0]), widen(in, wide[1]);
            if (SCALED) widen(z, wide[2]), widen(v, wide[3]);
            for (int j = 0; j < kEights; ++j) {
              wide[0][j] = at.only(j, wide[0][j]);  // 0 times an infinite scale is no number
              if (SCALED) wide[2][j] = at.only(j, wide[2][j]);
              chain[j] = chain[j] + wide[0][j];
              chain[kNext + j] = fma8(wide[0][j], wide[1][j] - shift, chain[kNext + j]);
              if (!SCALED) continue;
              chain[2 * kNext + j] = chain[2 * kNext + j] + wide[2][j];
              chain[3 * kNext + j] = fma8(wide[2][j], wide[3][j], chain[3 * kNext + j]);
            }
          });
      if (SCALED) to.offset[c] = sums[2], to.scale[c] = sums[3];
      const V p = set1(static_cast<float>(r)), q = set1(static_cast<float>(sums[1] * (-r * r / m))),
              mean = set1(static_cast<float>(sums[0] / m));
      channel.write(dx, false, [&](Mask mask, int64_t i) {
        const V in = load(mask, x + i), z = of.rectifierBack(of.normal(in), load(mask, dy + i));
        return mul(p, fma(q, add(in, of.minus), sub(of.scaleBack(z), mean)));
      });
    });
  });
}

}  // namespace crema::kernels::KNS
