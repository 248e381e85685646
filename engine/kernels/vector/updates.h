// The solvers' update rules; the formulas stand in kernels.h. Products and sums are fused where they are written so
// here, for all instruction sets alike.
namespace crema::kernels::KNS {

INL V constant(double x) { return set1(static_cast<float>(x)); }

struct UpdateConstants {
  V rate, momentum, rest, squares, restOfSquares, delta;
};

// One vector's step; g is its gradient with decay.
template <UpdateRule RULE>
INL V changeOf(const UpdateConstants& k, Mask m, V g, float* history, float* history2) {
  const V before = load(m, history);
  if constexpr (RULE == UpdateRule::kSgd || RULE == UpdateRule::kNesterov) {
    const V now = fma(k.momentum, before, mul(k.rate, g));
    store(m, history, now);
    return RULE == UpdateRule::kSgd ? now : add(now, mul(k.momentum, sub(now, before)));
  } else if constexpr (RULE == UpdateRule::kAdaGrad || RULE == UpdateRule::kRmsProp) {
    const V now =
        RULE == UpdateRule::kAdaGrad ? fma(g, g, before) : fma(k.squares, before, mul(k.restOfSquares, mul(g, g)));
    store(m, history, now);
    return div(mul(k.rate, g), add(sqrt(now), k.delta));
  } else {
    const V before2 = load(m, history2);
    if constexpr (RULE == UpdateRule::kAdam) {
      const V mean = fma(k.momentum, before, mul(k.rest, g));
      const V square = fma(k.squares, before2, mul(k.restOfSquares, mul(g, g)));
      store(m, history, mean);
      store(m, history2, square);
      return div(mul(k.rate, mean), add(sqrt(square), k.delta));
    }
    const V square = fma(k.momentum, before, mul(k.rest, mul(g, g)));
    const V v = mul(g, sqrt(div(add(before2, k.delta), add(square, k.delta))));
    store(m, history, square);
    store(m, history2, fma(k.momentum, before2, mul(k.rest, mul(v, v))));
    return mul(k.rate, v);
  }
}

template <UpdateRule RULE>
void updateBy(Context& c, int64_t n, const Update& u, const float* diff, float* history, float* history2, float* w) {
  const UpdateConstants k{constant(u.rate),           constant(u.momentum),           constant(1 - u.momentum),
                          constant(u.decayOfSquares), constant(1 - u.decayOfSquares), constant(u.delta)};
  const V decay = constant(u.decay), scale = constant(u.scale), one = set1(1.f), minus = set1(-1.f);
  eachVector(c, n, [&](Mask m, int64_t i) {
    const V value = load(m, w + i);
    const V sign = select(greater(value, zero()), one, select(greater(zero(), value), minus, zero()));
    const V g = fma(load(m, diff + i), scale, mul(decay, u.l1 ? sign : value));
    store(m, w + i, sub(value, changeOf<RULE>(k, m, g, history + i, history2 ? history2 + i : nullptr)));
  });
}

inline void update(Context& c, int64_t n, const Update& u, const float* diff, float* history, float* history2,
                   float* w) {
  using R = UpdateRule;
  constexpr decltype(&updateBy<R::kSgd>) kBy[] = {updateBy<R::kSgd>,     updateBy<R::kNesterov>, updateBy<R::kAdaGrad>,
                                                  updateBy<R::kRmsProp>, updateBy<R::kAdaDelta>, updateBy<R::kAdam>};
  kBy[static_cast<int>(u.rule)](c, n, u, diff, history, history2, w);
}

}  // namespace crema::kernels::KNS
