// Convolution with a filter for each channel (as many groups as channels): nothing is summed over channels, so a plane is
// taken at a time. Where its rows are not read in place (conv_depthwise_rows.h), it is copied with its padding, split by
// strides; then a tap is a shift of the whole plane, and vectors run over its positions in order, the last few of a row for
// nothing. Chains are those of the other convolutions.
namespace crema::kernels::KNS {

constexpr int kMostShifts = 1024;
inline bool isDepthwise(const ConvShape& s) { return s.groups == s.ic && s.ic == s.oc && s.kh * s.kw <= kMostShifts; }

// to[q] = start + sum_k w[k] source[off[k] + q] for q < N vectors, after finish(these).
template <int N, class Finish>
INL void addShiftsOf(const float* source, const int* off, const float* w, int K, float start, float* to,
                     const Finish& finish) {
  V acc[N];
#pragma GCC unroll 8
  for (int i = 0; i < N; ++i) acc[i] = set1(start);
  for (int k = 0; k < K; ++k) {
    const V a = set1(w[k]);
    const float* s = source + off[k];
#pragma GCC unroll 8
    for (int i = 0; i < N; ++i) acc[i] = fma(a, load(s + i * VL), acc[i]);
  }
  finish(acc, std::integral_constant<int, N>());
#pragma GCC unroll 8
  for (int i = 0; i < N; ++i) store(to + i * VL, acc[i]);
}

constexpr int kAtOnce = 8;  // vectors
struct NoSteps {
  template <class N>
  INL void operator()(V*, N) const {}
};

// The same for q < count, rounded up to two, four or eight vectors.
template <class Finish = NoSteps>
void addShifts(const float* source, const int* off, const float* w, int K, float start, int count, float* to,
               const Finish& finish = {}) {
  int q = 0;
  for (; count - q > kAtOnce / 2 * VL; q += kAtOnce * VL)
    addShiftsOf<kAtOnce>(source + q, off, w, K, start, to + q, finish);
  if (count - q > kAtOnce / 4 * VL)
    addShiftsOf<kAtOnce / 2>(source + q, off, w, K, start, to + q, finish);
  else if (count > q)
    addShiftsOf<kAtOnce / 4>(source + q, off, w, K, start, to + q, finish);
}
// How far that reads and writes beyond the end of planes with such rows.
inline size_t beyond(int columns) { return kAtOnce * 16 + 32 + static_cast<size_t>(columns); }

// `count` outputs of a channel after steps that add another blob; `at` is the place of the first in the blob. The last of a
// line are computed twice where that makes whole vectors.
inline void finishLine(const Epilogue<float>& then, int channel, const float* line, int count, size_t at, float* y) {
  alignas(64) float others[kPanel] = {};
  for (int next = 0; next < count; next += kPanel) {
    const int x = std::min(next, std::max(0, count - kPanel)), n = std::min(kPanel, count);
    V values[kWidth];
    for (int v = 0; v < kWidth; ++v) values[v] = load(line + x + v * VL);
    for (const Step<float>& step : then) {
      const float* other = step.kind == Step<float>::kAdd ? step.other + at + x : nullptr;
      if (other && n < kPanel) std::memcpy(others, other, static_cast<size_t>(n) * 4), other = others;
      stepRow(step, channel, other, values);
    }
    float* to = y + at + x;
    for (int v = 0; v < kWidth; ++v, to += VL) {
      const int here = std::min(VL, n - v * VL);
      if (here == VL)
        store(to, values[v]);
      else if (here > 0)
        store(lanes(0, here), to, values[v]);
    }
  }
}

// A plane of x with its padding, as planes.build() makes it; without strides quicker, as it is one row after the other.
inline void fillPlane(const ConvShape& s, const Planes& planes, const float* x, float* to) {
  if (s.strideH > 1 || s.strideW > 1) return planes.build(x, 1, to);
  std::memset(to, 0, planes.channel * 4);
  const int last = std::min(s.h, planes.rows - s.padH), count = std::min(s.w, planes.columns - s.padW);
  for (int y = 0; y < last; ++y)
    copyRow(x + static_cast<size_t>(y) * s.w, count, to + static_cast<size_t>(y + s.padH) * planes.columns + s.padW);
}

// Rows that are computed together: their results stay in the first cache.
inline int rowsTogether(int rows, int columns) { return std::clamp(2048 / std::max(1, columns), 1, std::max(1, rows)); }

// So many planes are filled before the first of them is read: a vector over numbers that were just stored in smaller pieces
// waits until they have reached the cache.
inline int planesTogether(size_t plane) { return static_cast<int>(std::clamp<size_t>(4096 / (plane + 1), 1, 16)); }

class DepthwiseForward {
 public:
  DepthwiseForward(const ConvShape& s, const Planes& planes, const float* w, const float* bias, float* y,
                   const Epilogue<float>& then)
      : s_(s), planes_(planes), w_(w), bias_(bias), y_(y), then_(then), some_(rowsTogether(s.oh(), planes.columns)) {
    for (int a = 0; a < s.kh; ++a)
      for (int b = 0; b < s.kw; ++b) off_.push_back(planes.off(0, a, b));
    for (const Step<float>& step : then) adds_ = adds_ || step.other;
  }
  size_t line() const { return static_cast<size_t>(some_) * planes_.columns + beyond(planes_.columns); }

  // Plane i of the output from that of the input with its padding; `line` is scratch.
  void plane(int i, const float* from, float* line) const {
    const int c = i % s_.ic, taps = s_.kh * s_.kw, oh = s_.oh(), ow = s_.ow(), columns = planes_.columns;
    for (int r0 = 0; r0 < oh; r0 += some_) {
      const int rows = std::min(some_, oh - r0);
      const auto shifts = [&](const auto& finish) {
        addShifts(from + static_cast<size_t>(r0) * columns, off_.data(), w_ + static_cast<size_t>(c) * taps, taps,
                  bias_ ? bias_[c] : 0.f, rows * columns, line, finish);
      };
      const size_t at = (static_cast<size_t>(i) * oh + r0) * ow;
      if (adds_) {
        shifts(NoSteps());
        for (int r = 0; r < rows; ++r)
          finishLine(then_, c, line + static_cast<size_t>(r) * columns, ow, at + static_cast<size_t>(r) * ow, y_);
      } else {
        shifts([&](V * these, auto n) __attribute__((always_inline)) {
          for (const Step<float>& step : then_) stepRow<n>(step, c, nullptr, these);
        });
        for (int r = 0; r < rows; ++r)
          copyRow(line + static_cast<size_t>(r) * columns, ow, y_ + at + static_cast<size_t>(r) * ow);
      }
    }
  }

 private:
  const ConvShape& s_;
  const Planes& planes_;
  const float *w_, *bias_;
  float* y_;
  const Epilogue<float>& then_;
  int some_;
  bool adds_ = false;
  std::vector<int> off_;
};

inline void depthwiseForward(Context& context, const ConvShape& s, const float* x, const float* w, const float* bias,
                             float* y, const Epilogue<float>& then) {
  if (readsRows(s))
    return s.strideW == 1 ? depthwiseRows<1, false>(context, s, x, w, bias, y, then)
                          : depthwiseRows<2, false>(context, s, x, w, bias, y, then);
  const Planes planes(s, false);
  const DepthwiseForward forward(s, planes, w, bias, y, then);
  const int together = planesTogether(planes.channel);
  eachPlanes(context, s.n * s.ic, s.oh() * s.ow(), [&](int first, int last, int lane) {
    const size_t all = planes.channel * static_cast<size_t>(together) + beyond(planes.columns);
    float* plane = context.scratch().lane[static_cast<size_t>(lane)].planes.get(all + forward.line());
    for (int i = first; i < last; i += together) {
      const int n = std::min(together, last - i);
      for (int j = 0; j < n; ++j)
        fillPlane(s, planes, x + static_cast<size_t>(i + j) * s.h * s.w,
                  plane + static_cast<size_t>(j) * planes.channel);
      for (int j = 0; j < n; ++j) forward.plane(i + j, plane + static_cast<size_t>(j) * planes.channel, plane + all);
    }
  });
}

// The gradient of the input, plane by plane: of each row of dx the numbers of all stride phases along it.
class DepthwiseBack {
 public:
  DepthwiseBack(const ConvShape& s, const BackPlan& plan) : s_(s), plan_(plan) {
    most_ = rowsTogether(plan.rows, plan.columns);
    tile_ = static_cast<size_t>(most_) * plan.columns + beyond(plan.columns);
    for (const BackPhase& f : plan.phases)
      for (int j = 0; j < f.tapsH; ++j)
        for (int l = 0; l < f.tapsW; ++l) place_.push_back((f.r + j * s.strideH) * s.kw + f.q + l * s.strideW);
  }
  size_t tile() const { return 2 * tile_; }

  // source: dy of one plane, padded; `tile` is scratch.
  void plane(const float* w, const float* source, float* dx, float* tile) const {
    size_t place = 0;
    for (size_t i = 0; i < plan_.phases.size(); ++i) {
      const BackPhase& f = plan_.phases[i];
      // Both phases of a stride of two along a row are written together.
      const bool two = s_.strideW == 2 && i + 1 < plan_.phases.size() && plan_.phases[i + 1].r == f.r && f.rows > 0 &&
                       plan_.phases[i + 1].rows > 0;
      const BackPhase& g = plan_.phases[two ? ++i : i];
      float weights[2][kMostShifts];
      for (int k = 0; k < f.K; ++k) weights[0][k] = w[place_[place++]];
      for (int k = 0; two && k < g.K; ++k) weights[1][k] = w[place_[place++]];
      for (int y0 = 0; y0 < f.rows; y0 += most_) {
        const int rows = std::min(most_, f.rows - y0);
        const float* from = source + static_cast<size_t>(y0) * plan_.columns;
        addShifts(from, f.off.data(), weights[0], f.K, 0, rows * plan_.columns, tile);
        if (two) addShifts(from, g.off.data(), weights[1], g.K, 0, rows * plan_.columns, tile + tile_);
        for (int y = 0; y < rows; ++y) {
          const float* line = tile + static_cast<size_t>(y) * plan_.columns;
          float* to = dx + static_cast<size_t>(f.startH + (y0 + y) * s_.strideH) * s_.w;
          two ? twoPhases(f, g, line, line + tile_, to) : onePhase(f, line, to + f.startW);
        }
      }
    }
  }

 private:
  void onePhase(const BackPhase& f, const float* from, float* to) const {
    if (s_.strideW == 1)
      copyRow(from, f.columns, to);
    else
      for (int x = 0; x < f.columns; ++x) to[static_cast<ptrdiff_t>(x) * s_.strideW] = from[x];
  }
  // Their columns alternate.
  static void twoPhases(const BackPhase& f, const BackPhase& g, const float* a, const float* b, float* to) {
    if (f.startW > g.startW) std::swap(a, b);
    zipRow(a, b, f.columns + g.columns, to);
  }

  const ConvShape& s_;
  const BackPlan& plan_;
  int most_;
  size_t tile_;
  std::vector<int> place_;  // of the weights, phase by phase
};

inline void depthwiseBackwardData(Context& context, const ConvShape& s, const float* dy, const float* w, float* dx) {
  if (readsRows(s))
    return s.strideW == 1 ? depthwiseRows<1, true>(context, s, dy, w, nullptr, dx, {})
           : s.padW % 2   ? depthwiseStrideTwoBack<true>(context, s, dy, w, dx)
                          : depthwiseStrideTwoBack<false>(context, s, dy, w, dx);
  const BackPlan plan = planBack(s);
  const DepthwiseBack back(s, plan);
  const size_t in = static_cast<size_t>(s.h) * s.w, out = static_cast<size_t>(s.oh()) * s.ow();
  const int together = planesTogether(plan.channel);
  eachPlanes(context, s.n * s.ic, s.h * s.w, [&](int first, int last, int lane) {
    const size_t all = plan.channel * static_cast<size_t>(together) + beyond(plan.columns);
    float* source = context.scratch().lane[static_cast<size_t>(lane)].planes.get(all + back.tile());
    for (int i = first; i < last; i += together) {
      const int n = std::min(together, last - i);
      padGradient(s, plan, dy + static_cast<size_t>(i) * out, n, source);
      float* to = dx + static_cast<size_t>(i) * in;
      if (!plan.whole) std::memset(to, 0, in * static_cast<size_t>(n) * 4);
      for (int j = 0; j < n; ++j, to += in)
        back.plane(w + static_cast<size_t>((i + j) % s.ic) * s.kh * s.kw,
                   source + static_cast<size_t>(j) * plan.channel, to, source + all);
    }
  });
}

}  // namespace crema::kernels::KNS
