// Element-wise kernels. Tails are masked vectors, so a last element takes the same operations as any other.
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

inline void addRelu(Context& c, int64_t n, float slope, const float* a, const float* b, float* y) {
  const V s = set1(slope);
  eachVector(c, n, [&](Mask m, int64_t i) {
    const V v = add(load(m, a + i), load(m, b + i));
    store(m, y + i, select(greater(v, zero()), v, mul(v, s)));
  });
}
inline void addReluBackward(Context& c, int64_t n, float slope, const float* y, const float* dy0, const float* dy1,
                            float* dx0, float* dx1) {
  const auto each = [&, s = set1(slope)](auto gradient) {
    eachVector(c, n, [&](Mask m, int64_t i) {
      const V g = gradient(m, i), d = select(greater(load(m, y + i), zero()), g, mul(g, s));
      store(m, dx0 + i, d);
      if (dx1) store(m, dx1 + i, d);
    });
  };
  if (dy1)
    each([&](Mask m, int64_t i) __attribute__((always_inline)) { return add(load(m, dy0 + i), load(m, dy1 + i)); });
  else
    each([&](Mask m, int64_t i) __attribute__((always_inline)) { return load(m, dy0 + i); });
}

}  // namespace crema::kernels::KNS
