// Kernels of norm.h: a channel is a task, and its numbers stay in the thread's cache between its passes.
namespace crema::kernels::KNS {

// `rows` of `inner` numbers, `stride` apart: those of a channel.
struct ChannelRows {
  int64_t first, stride;
  int rows, inner;
  ChannelRows(const ChannelShape& s, int c)
      : first(int64_t{c} * s.inner), stride(int64_t{s.channels} * s.inner), rows(s.outer), inner(s.inner) {}

  // body(mask, i) over all of them, a vector at a time
  template <class Body>
  INL void eachVector(Body body) const {
    for (int o = 0; o < rows; ++o) {
      const int64_t row = first + o * stride;
      int i = 0;
      for (; i + VL <= inner; i += VL) body(lanes(0, VL), row + i);
      if (i < inner) body(lanes(0, inner - i), row + i);
    }
  }
};

// K sums over the numbers of a channel, each in the order of sumChannels(). ready(mask, i) prepares a vector of numbers
// from i on, terms(h, t) gives the K terms of the eight of them that begin with the h-th.
template <int K, class Ready, class Terms>
INL void totals(const ChannelRows& channel, double* sums, Ready ready, Terms terms) {
  for (int k = 0; k < K; ++k) sums[k] = 0;
  for (int o = 0; o < channel.rows; ++o) {
    const int64_t row = channel.first + o * channel.stride;
    D8 chain[K], t[K];
    for (int k = 0; k < K; ++k) chain[k] = set8(0);
    const auto addEight = [&](int h) __attribute__((always_inline)) {
      terms(h, t);
      for (int k = 0; k < K; ++k) chain[k] = chain[k] + t[k];
    };
    int i = 0;
    for (; i + VL <= channel.inner; i += VL) {
      ready(lanes(0, VL), row + i);
      for (int h = 0; h < VL; h += 8) addEight(h);
    }
    const int rest = channel.inner - i;
    int h = 0;
    if (rest) ready(lanes(0, rest), row + i);
    for (; h + 8 <= rest; h += 8) addEight(h);
    if (h < rest) terms(h, t);
    for (int k = 0; k < K; ++k) {
      double chains[8], last[8];
      store8(chains, chain[k]);
      if (h < rest) store8(last, t[k]);
      for (int l = 0; l < rest - h; ++l) chains[l] += last[l];
      for (int half = 4; half; half /= 2)
        for (int l = 0; l < half; ++l) chains[l] += chains[l + half];
      sums[k] += chains[0];
    }
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
  withNormSteps(steps, [&]<bool SCALED, bool RECTIFIED>() {
    context.pool().run(s.channels, [&](int c, int) {
      const ChannelRows channel(s, c);
      alignas(64) float some[VL];
      const auto ready = [&](Mask mask, int64_t i) { store(some, load(mask, x + i)); };
      double sum;
      totals<1>(channel, &sum, ready, [&](int h, D8* t) { *t = load8(some + h); });
      const double mean = sum / m;
      totals<1>(channel, &sum, ready, [&, shift = set8(mean)](int h, D8* t) {
        const D8 d = load8(some + h) - shift;
        *t = d * d;
      });
      to.mean[c] = mean, to.variance[c] = sum / m, to.factor[c] = 1 / std::sqrt(to.variance[c] + eps);
      const NormChannel<SCALED, RECTIFIED> of(steps, c, mean, to.factor[c]);
      channel.eachVector([&](Mask mask, int64_t i) { store(mask, y + i, of.forward(load(mask, x + i))); });
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
      alignas(64) float in[VL], normal[VL], dz[VL], dv[VL];
      const auto ready = [&](Mask mask, int64_t i) {
        const V at = load(mask, x + i), v = of.normal(at), d = of.rectifierBack(v, load(mask, dy + i));
        store(in, at), store(dv, of.scaleBack(d));
        if (SCALED) store(normal, v), store(dz, d);
      };
      double sums[4];
      totals<SCALED ? 4 : 2>(channel, sums, ready, [&](int h, D8* t) {
        const D8 d = load8(dv + h);
        t[0] = d, t[1] = d * (load8(in + h) - shift);
        if (!SCALED) return;
        t[2] = load8(dz + h), t[3] = t[2] * load8(normal + h);
      });
      if (SCALED) to.offset[c] = sums[2], to.scale[c] = sums[3];
      const D8 p = set8(r), q = set8(sums[1] * (-r * r * r / m)), rest = set8(sums[0] * (-r / m));
      channel.eachVector([&](Mask mask, int64_t i) {
        ready(mask, i);
        for (int h = 0; h < VL; h += 8) store8(dv + h, p * load8(dv + h) + q * (load8(in + h) - shift) + rest);
        store(mask, dx + i, load(dv));
      });
    });
  });
}

}  // namespace crema::kernels::KNS
