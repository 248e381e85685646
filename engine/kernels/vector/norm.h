// Kernels of norm.h: a channel is a task, and its numbers stay in the thread's cache between its passes.
namespace crema::kernels::KNS {

// to[i] = of(mask, i) for all numbers of a channel, a vector at a time; past the caches, if the blob is such a one
// (isStreamed()).
template <class Of>
INL void writeChannel(const ChannelRows& channel, float* to, bool streams, Of of) {
  for (int o = 0; o < channel.rows; ++o) {
    const int64_t row = channel.first + o * channel.stride;
    int i = 0;
    for (; i + VL <= channel.inner; i += VL) {
      const V v = of(lanes(0, VL), row + i);
      if (streams)
        stream(to + row + i, v);
      else
        store(to + row + i, v);
    }
    if (const Mask rest = lanes(0, channel.inner - i); i < channel.inner) store(rest, to + row + i, of(rest, row + i));
  }
  if (streams) drain();
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
      double sum;
      totals<1>(
          channel, {x}, &sum, [&](auto at, int64_t i, V* chain) __attribute__((always_inline)) {
            *chain = add(*chain, at.read(x + i));
          });
      const double mean = sum / m;
      const V shift = set1(static_cast<float>(mean));
      totals<1>(
          channel, {}, &sum, [&](auto at, int64_t i, V* chain) __attribute__((always_inline)) {
            channel.next(x + i);
            const V d = at.only(sub(at.read(x + i), shift));
            *chain = fma(d, d, *chain);
          });
      to.mean[c] = mean, to.variance[c] = sum / m, to.factor[c] = 1 / std::sqrt(to.variance[c] + eps);
      const NormChannel<SCALED, RECTIFIED> of(steps, c, mean, to.factor[c]);
      writeChannel(channel, y, streams, [&](Mask mask, int64_t i) {
        channel.next(x + i);
        return of.forward(load(mask, x + i));
      });
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
      double sums[4];
      totals<SCALED ? 4 : 2>(
          channel, {x, dy}, sums, [&](auto at, int64_t i, V* chain) __attribute__((always_inline)) {
            constexpr int kNext = kSumVectors;  // from sum to sum
            const V in = at.read(x + i), v = of.normal(in), dz = at.only(of.rectifierBack(v, at.read(dy + i))),
                    dv = at.only(of.scaleBack(dz));  // as 0 times an infinite scale is no number
            chain[0] = add(chain[0], dv);
            chain[kNext] = fma(dv, add(in, of.minus), chain[kNext]);
            if (!SCALED) return;
            chain[2 * kNext] = add(chain[2 * kNext], dz);
            chain[3 * kNext] = fma(dz, v, chain[3 * kNext]);
          });
      if (SCALED) to.offset[c] = sums[2], to.scale[c] = sums[3];
      const V p = set1(static_cast<float>(r)), q = set1(static_cast<float>(sums[1] * (-r * r / m))),
              mean = set1(static_cast<float>(sums[0] / m));
      writeChannel(channel, dx, false, [&](Mask mask, int64_t i) {
        channel.next(x + i), channel.next(dy + i);
        const V in = load(mask, x + i), z = of.rectifierBack(of.normal(in), load(mask, dy + i));
        return mul(p, fma(q, add(in, of.minus), sub(of.scaleBack(z), mean)));
      });
    });
  });
}

}  // namespace crema::kernels::KNS
