// Element-wise kernels and LRN. Tails are masked vectors, so a last element takes the same operations as any other.
namespace crema::kernels::KNS {

// body(from, to) over pieces of [0, count), split over threads.
template <class Body>
void eachPiece(Context& context, int64_t count, const Body& body) {
  constexpr int64_t kPiece = 1 << 15;
  context.pool().run(static_cast<int>((count + kPiece - 1) / kPiece),
                     [&](int t, int) { body(t * kPiece, std::min(count, (t + 1) * kPiece)); });
}

// body(mask, offset) over [0, count): whole vectors, and a masked tail of each piece.
template <class Body>
void eachVector(Context& context, int64_t count, Body body) {
  eachPiece(context, count, [&](int64_t from, int64_t to) {
    int64_t i = from;
    for (; i + VL <= to; i += VL) body(lanes(0, VL), i);
    if (i < to) body(lanes(0, static_cast<int>(to - i)), i);
  });
}

inline void reluForward(Context& c, int64_t n, float slope, const float* x, float* y) {
  const V s = set1(slope);
  eachVector(c, n, [&](Mask m, int64_t i) {
    const V v = load(m, x + i);
    store(m, y + i, select(greater(v, zero()), v, mul(v, s)));
  });
}
inline void reluBackward(Context& c, int64_t n, float slope, const float* x, const float* dy, float* dx) {
  const V s = set1(slope);
  eachVector(c, n, [&](Mask m, int64_t i) {
    const V g = load(m, dy + i);
    store(m, dx + i, select(greater(load(m, x + i), zero()), g, mul(g, s)));
  });
}
inline void multiply(Context& c, int64_t n, const float* a, const float* b, float* y) {
  eachVector(c, n, [&](Mask m, int64_t i) { store(m, y + i, mul(load(m, a + i), load(m, b + i))); });
}
inline void add(Context& c, int64_t n, const float* a, const float* b, float* y) {
  eachVector(c, n, [&](Mask m, int64_t i) { store(m, y + i, add(load(m, a + i), load(m, b + i))); });
}

// s^0.75 = sqrt(s) * sqrt(sqrt(s)): correctly rounded operations only, the same everywhere.
INL V power34(V s) {
  const V r = sqrt(s);
  return mul(r, sqrt(r));
}

// out(c, in(c - h) + ... + in(c + h)) for every channel, oldest first, zeros outside; the window stays in registers.
template <int SIZE, class In, class Out>
INL void slide(int channels, In in, Out out) {
  constexpr int h = SIZE / 2;
  V window[SIZE];
#pragma GCC unroll 16
  for (int k = 0; k < SIZE; ++k) window[k] = zero();
  const auto push = [&](V t) {
#pragma GCC unroll 16
    for (int k = 0; k < SIZE - 1; ++k) window[k] = window[k + 1];
    window[SIZE - 1] = t;
  };
  for (int c = 0; c < h; ++c) push(c < channels ? in(c) : zero());
  for (int c = 0; c < channels; ++c) {
    push(c + h < channels ? in(c + h) : zero());
    V s = window[0];
#pragma GCC unroll 16
    for (int k = 1; k < SIZE; ++k) s = add(s, window[k]);
    out(c, s);
  }
}

template <class Body>
void eachColumn(Context& context, const LrnShape& s, Body body) {  // vectors over space, all channels of one image
  const int vectors = (s.hw + VL - 1) / VL;
  context.pool().run(s.n * vectors, [&](int t, int) {
    const int i = t / vectors, v = t % vectors;
    body(lanes(0, std::min(VL, s.hw - v * VL)), static_cast<size_t>(i) * s.c * s.hw + static_cast<size_t>(v) * VL);
  });
}

template <int SIZE>
void lrnForwardOf(Context& context, const LrnShape& s, const float* x, float* scale, float* y) {
  const V an = set1(static_cast<float>(s.alpha / s.size)), k = set1(static_cast<float>(s.k));
  eachColumn(context, s, [&](Mask m, size_t o) {
    slide<SIZE>(
        s.c,
        [&](int c) {
          const V t = load(m, x + o + static_cast<size_t>(c) * s.hw);
          return mul(t, t);
        },
        [&](int c, V sum) {
          const size_t q = o + static_cast<size_t>(c) * s.hw;
          const V at = fma(sum, an, k);
          store(m, scale + q, at);
          store(m, y + q, div(load(m, x + q), power34(at)));
        });
  });
}

template <int SIZE>
void lrnBackwardOf(Context& context, const LrnShape& s, const float* x, const float* y, const float* scale,
                   const float* dy, float* dx) {
  const V k2 = set1(static_cast<float>(-2 * s.alpha * s.beta / s.size)), one = set1(1.f);
  eachColumn(context, s, [&](Mask m, size_t o) {
    slide<SIZE>(
        s.c,
        [&](int c) {
          const size_t q = o + static_cast<size_t>(c) * s.hw;
          return div(mul(load(m, dy + q), load(m, y + q)), load(one, m, scale + q));
        },
        [&](int c, V sum) {
          const size_t q = o + static_cast<size_t>(c) * s.hw;
          const V d = div(load(m, dy + q), power34(load(one, m, scale + q)));
          store(m, dx + q, fma(mul(k2, load(m, x + q)), sum, d));
        });
  });
}

// Caffe's usual power and windows of 3 and 5; others go through pow() and are slower.
inline bool lrnIsFast(const LrnShape& s) { return s.beta == 0.75 && (s.size == 3 || s.size == 5); }

inline void lrnForward(Context& c, const LrnShape& s, const float* x, float* scale, float* y) {
  if (!lrnIsFast(s)) return kFloatReference.lrnForward(c, s, x, scale, y);
  s.size == 3 ? lrnForwardOf<3>(c, s, x, scale, y) : lrnForwardOf<5>(c, s, x, scale, y);
}
inline void lrnBackward(Context& c, const LrnShape& s, const float* x, const float* y, const float* scale,
                        const float* dy, float* dx) {
  if (!lrnIsFast(s)) return kFloatReference.lrnBackward(c, s, x, y, scale, dy, dx);
  s.size == 3 ? lrnBackwardOf<3>(c, s, x, y, scale, dy, dx) : lrnBackwardOf<5>(c, s, x, y, scale, dy, dx);
}

}  // namespace crema::kernels::KNS
