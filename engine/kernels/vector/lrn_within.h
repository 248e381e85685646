// LRN within a channel. Vectors run over a whole plane, from row to row, so that planes of 8 columns fill them too; what of a
// window lies beyond the ends of its row is masked.
namespace crema::kernels::KNS {

// Sums over the window of each number of a plane: columns of the window first, top to bottom, then their neighbours from left
// to right. A task has one for its planes: the zeros about them are set once.
class WindowSums {
 public:
  static size_t numbers(const LrnWithinShape& s) {
    return 2 * (static_cast<size_t>(s.h) * s.w + margin(s) + VL) + static_cast<size_t>(across(s)) + VL;
  }

  // work: numbers(s) of them; columns: the column of each number of a plane, and VL more.
  WindowSums(const LrnWithinShape& s, const float* columns, float* work)
      : s_(s), plane_(s.h * s.w), columns_(columns), terms_(work + margin(s)), sums_(terms_ + plane_ + margin(s) + VL) {
    std::memset(work, 0, numbers(s) * sizeof(float));
  }

  // term(mask, i) of each number i, the sums of which are for out(mask, i, sum).
  template <class Term, class Out>
  INL void operator()(const Term& term, const Out& out) const {
    const ptrdiff_t w = s_.w;
    const int down = std::min(s_.size / 2, s_.h - 1), aside = across(s_);
    eachVector([&](Mask m, int i) { store(m, terms_ + i, term(m, i)); });
    eachVector([&](Mask m, int i) {
      V sum = load(terms_ + i - down * w);
      for (ptrdiff_t a = 1 - down; a <= down; ++a) sum = add(sum, load(terms_ + i + a * w));
      store(m, sums_ + i, sum);
    });
    eachVector([&](Mask m, int i) {
      const V column = load(columns_ + i);
      V sum = zero();
      for (int b = -aside; b < 0; ++b)
        sum = add(sum, load(greater(column, set1(-0.5f - static_cast<float>(b))), sums_ + i + b));
      sum = add(sum, load(sums_ + i));
      for (int b = 1; b <= aside; ++b)
        sum = add(sum, load(greater(set1(static_cast<float>(s_.w - b) - 0.5f), column), sums_ + i + b));
      out(m, i, sum);
    });
  }

 private:
  // Columns of a window on each side of its own, and the zeros before a plane and behind it: rows that are outside. The last vector
  // of a plane reads so many columns behind it, too.
  static int across(const LrnWithinShape& s) { return std::min(s.size / 2, s.w - 1); }
  static size_t margin(const LrnWithinShape& s) { return static_cast<size_t>(std::min(s.size / 2, s.h)) * s.w; }

  template <class Body>
  INL void eachVector(const Body& body) const {
    int i = 0;
    for (; i + VL <= plane_; i += VL) body(lanes(0, VL), i);
    if (i < plane_) body(lanes(0, plane_ - i), i);
  }

  const LrnWithinShape& s_;
  int plane_;
  const float* columns_;
  float *terms_, *sums_;
};

// body(where the plane begins, its sums, a plane of scratch)
template <class Body>
void eachPlane(Context& context, const LrnWithinShape& s, Body body) {
  constexpr int64_t kPiece = 1 << 14;  // numbers a task
  const int64_t plane = int64_t{s.h} * s.w, planes = int64_t{s.n} * s.c;
  const int64_t step = std::max<int64_t>(1, kPiece / std::max<int64_t>(1, plane));
  if (plane == 0) return;
  auto& scratch = context.scratch();
  float* columns = scratch.shared[kSharedInput].get(static_cast<size_t>(plane + VL));
  for (int64_t i = 0; i < plane + VL; ++i) columns[i] = static_cast<float>(i % s.w);
  context.pool().run(static_cast<int>((planes + step - 1) / step), [&](int t, int lane) {
    LaneScratch& mine = scratch.lane[static_cast<size_t>(lane)];
    const WindowSums sums(s, columns, mine.panel.get(WindowSums::numbers(s)));
    float* work = mine.planes.get(static_cast<size_t>(plane));
    for (int64_t p = t * step; p < std::min(planes, (t + 1) * step); ++p) body(p * plane, sums, work);
  });
}

inline void lrnWithinForward(Context& c, const LrnWithinShape& s, const float* x, float* scale, float* y) {
  if (s.beta != 0.75)
    return eachImage(c, s, int64_t{s.c} * s.h * s.w, [&](const LrnWithinShape& image, int64_t at) {
      kFloatReference.lrnWithinForward(c, image, x + at, scale ? scale + at : nullptr, y + at);
    });
  const V each = set1(static_cast<float>(s.alpha / (double(s.size) * s.size))), one = set1(1.f);
  eachPlane(c, s, [&](int64_t o, const WindowSums& sums, float*) {
    sums(
        [&](Mask m, int i) __attribute__((always_inline)) {
          const V t = load(m, x + o + i);
          return mul(t, t);
        },
        [&](Mask m, int i, V sum) __attribute__((always_inline)) {
          const V at = fma(sum, each, one);
          if (scale) store(m, scale + o + i, at);
          store(m, y + o + i, mul(load(m, x + o + i), inversePower34(at)));
        });
  });
}

// dx = scale^-3/4 dy - 2 alpha beta / size^2 x times the sum of x scale^-7/4 dy over the window.
inline void lrnWithinBackward(Context& c, const LrnWithinShape& s, const float* x, const float* scale, const float* dy,
                              float* dx) {
  if (s.beta != 0.75)
    return eachImage(c, s, int64_t{s.c} * s.h * s.w, [&](const LrnWithinShape& image, int64_t at) {
      kFloatReference.lrnWithinBackward(c, image, x + at, scale + at, dy + at, dx + at);
    });
  const V each = set1(static_cast<float>(-2 * s.alpha * s.beta / (double(s.size) * s.size))), one = set1(1.f);
  eachPlane(c, s, [&](int64_t o, const WindowSums& sums, float* direct) {
    sums(
        [&](Mask m, int i) __attribute__((always_inline)) {
          const V at = load(one, m, scale + o + i), d = mul(load(m, dy + o + i), inversePower34(at));
          store(m, direct + i, d);
          return div(mul(load(m, x + o + i), d), at);
        },
        [&](Mask m, int i, V sum) __attribute__((always_inline)) {
          store(m, dx + o + i, fma(mul(each, load(m, x + o + i)), sum, load(m, direct + i)));
        });
  });
}

}  // namespace crema::kernels::KNS
