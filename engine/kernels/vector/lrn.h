// LRN, with vectors over space. Tails are masked vectors, so a last element takes the same operations as any other.
namespace crema::kernels::KNS {

// s^-0.75 of correctly rounded operations only, the same everywhere. p = s^-1/4 by Newton's steps p (1 + d), d = (1 - s p^4) / 4,
// from a guess of 3 %, the exponent's quarter: a step leaves 2.5 times the square of the error. The last one is done on p^3,
// p^3 (1 + 3 d (1 + d)), so that its rounding counts once: in all 1.8e-7, where two roots and a quotient have 2.2e-7 and take
// three times as long. These are for what is very large, small or no number.
INL V inversePower34(V s) {
  const V minusQuarter = mul(s, set1(-0.25f));
  V p = subBits(set1Bits(0x4f586000), quarterBits(s)), square = mul(p, p);
#pragma GCC unroll 2
  for (int i = 0; i < 2; ++i) {
    p = mul(p, fma(minusQuarter, mul(square, square), set1(1.25f)));
    square = mul(p, p);
  }
  const V d = fma(minusQuarter, mul(square, square), set1(0.25f)), third = mul(square, p), d3 = mul(d, set1(3.f));
  const V cube = fma(third, fma(d3, d, d3), third);
  const Mask above = greater(s, set1(0x1p-60f)), below = greater(set1(0x1p60f), s);
  if (all(above) && all(below)) return cube;
  const V r = sqrt(s), slow = div(set1(1.f), mul(r, sqrt(r)));
  return select(above, select(below, cube, slow), slow);
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

// Channels lie a plane apart, as no processor foresees: what lies this many further is asked for.
constexpr int kChannelsAhead = 32;

// The line of a vector and the next one, in which it may end, and where the next vector begins.
template <int WRITES>
INL void askForTwo(const float* at) {
  __builtin_prefetch(at, WRITES), __builtin_prefetch(at + kLine, WRITES);
}

// Vectors over space, all channels of one image. A task takes some side by side: two threads that write to one line of a
// cache take it from each other for every channel.
template <class Body>
void eachColumn(Context& context, const LrnShape& s, Body body) {
  constexpr int kSome = 8;
  const int vectors = (s.hw + VL - 1) / VL, tasks = (vectors + kSome - 1) / kSome;
  context.pool().run(s.n * tasks, [&](int t, int lane) {
    const size_t image = static_cast<size_t>(t / tasks) * s.c * s.hw;
    for (int v = t % tasks * kSome; v < std::min(vectors, (t % tasks + 1) * kSome); ++v)
      body(lanes(0, std::min(VL, s.hw - v * VL)), image + static_cast<size_t>(v) * VL, lane);
  });
}

// scale(c, k + alpha / size * the window's sum of x^2) for every channel of a column at x.
template <int SIZE, class Scale>
INL void slideScales(const LrnShape& s, Mask m, const float* x, Scale scale) {
  const V an = set1(static_cast<float>(s.alpha / s.size)), k = set1(static_cast<float>(s.k));
  slide<SIZE>(
      s.c,
      [&](int c) {
        const float* from = x + static_cast<size_t>(c) * s.hw;
        askForTwo<0>(from + ptrdiff_t{kChannelsAhead} * s.hw);
        const V t = load(m, from);
        return mul(t, t);
      },
      [&](int c, V sum) { scale(c, fma(sum, an, k)); });
}

template <int SIZE>
void lrnForwardOf(Context& context, const LrnShape& s, const float* x, float* y) {
  const ptrdiff_t ahead = ptrdiff_t{kChannelsAhead} * s.hw;
  eachColumn(context, s, [&](Mask m, size_t o, int) {
    slideScales<SIZE>(s, m, x + o, [&](int c, V at) {
      const size_t q = o + static_cast<size_t>(c) * s.hw;
      askForTwo<1>(y + q + ahead);
      store(m, y + q, mul(load(m, x + q), inversePower34(at)));
    });
  });
}

// Scales and powers are computed anew, which costs less than to write them in the forward pass and to read them here. Those
// of a column stand in `column`: scale^-3/4 dy and the terms of the sum, VL numbers each, for each channel.
template <int SIZE>
INL void lrnBackwardColumn(const LrnShape& s, Mask m, const float* x, const float* dy, float* column, float* dx) {
  const V k2 = set1(static_cast<float>(-2 * s.alpha * s.beta / s.size));
  const ptrdiff_t ahead = ptrdiff_t{kChannelsAhead} * s.hw;
  slideScales<SIZE>(s, m, x, [&](int c, V at) {
    const size_t q = static_cast<size_t>(c) * s.hw;
    askForTwo<0>(dy + q + ahead), askForTwo<1>(dx + q + ahead);
    const V power = inversePower34(at), d = load(m, dy + q), y = mul(load(m, x + q), power);
    float* to = column + static_cast<size_t>(c) * 2 * VL;
    store(to, mul(d, power)), store(to + VL, div(mul(d, y), at));
  });
  slide<SIZE>(
      s.c, [&](int c) { return load(column + static_cast<size_t>(c) * 2 * VL + VL); },
      [&](int c, V sum) {
        const size_t q = static_cast<size_t>(c) * s.hw;
        store(m, dx + q, fma(mul(k2, load(m, x + q)), sum, load(column + static_cast<size_t>(c) * 2 * VL)));
      });
}

template <int SIZE>
void lrnBackwardOf(Context& context, const LrnShape& s, const float* x, const float* dy, float* dx) {
  eachColumn(context, s, [&](Mask m, size_t o, int lane) {
    float* column = context.scratch().lane[static_cast<size_t>(lane)].panel.get(static_cast<size_t>(s.c) * 2 * VL);
    lrnBackwardColumn<SIZE>(s, m, x + o, dy + o, column, dx + o);
  });
}

// Caffe's usual power and windows of 3 and 5; others go through pow() and are slower: the reference, an image a task.
inline bool lrnIsFast(const LrnShape& s) { return s.beta == 0.75 && (s.size == 3 || s.size == 5); }

// one(shape of an image, where it begins); `values` of each.
template <class Shape, class One>
void eachImage(Context& c, const Shape& s, int64_t values, One one) {
  Shape image = s;
  image.n = 1;
  c.pool().run(s.n, [&](int n, int) { one(image, n * values); });
}

inline void lrnForward(Context& c, const LrnShape& s, const float* x, float* y) {
  if (!lrnIsFast(s))
    return eachImage(c, s, int64_t{s.c} * s.hw,
                     [&](const LrnShape& image, int64_t at) { kFloatReference.lrnForward(c, image, x + at, y + at); });
  s.size == 3 ? lrnForwardOf<3>(c, s, x, y) : lrnForwardOf<5>(c, s, x, y);
}
inline void lrnBackward(Context& c, const LrnShape& s, const float* x, const float* dy, float* dx) {
  if (!lrnIsFast(s))
    return eachImage(c, s, int64_t{s.c} * s.hw, [&](const LrnShape& image, int64_t at) {
      kFloatReference.lrnBackward(c, image, x + at, dy + at, dx + at);
    });
  s.size == 3 ? lrnBackwardOf<3>(c, s, x, dy, dx) : lrnBackwardOf<5>(c, s, x, dy, dx);
}

}  // namespace crema::kernels::KNS
