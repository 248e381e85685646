// The input of convolutions: padded and split into stride phases, or unchanged where neither is needed.
namespace crema::kernels::KNS {

// Planes: one copy that pads, splits strides into phases and so makes every convolution a stride-1 one.
//   value(c, r, q, y, x) = X[c][y * strideH + r - padH][x * strideW + q - padW], zero outside; r < phasesH, q < phasesW
struct Planes {
  int h, w, strideH, strideW, padH, padW, dilH, dilW, phasesH, phasesW, rows, columns;
  size_t channel;
  bool plain;  // the input is used itself: no padding, stride 1
  explicit Planes(const ConvShape& s, bool exact)
      : h(s.h),
        w(s.w),
        strideH(s.strideH),
        strideW(s.strideW),
        padH(s.padH),
        padW(s.padW),
        dilH(s.dilH),
        dilW(s.dilW),
        phasesH(std::min(strideH, (s.kh - 1) * dilH + 1)),
        phasesW(std::min(strideW, (s.kw - 1) * dilW + 1)),
        rows(s.oh() + (s.kh - 1) * dilH / strideH),
        columns(s.ow() + (s.kw - 1) * dilW / strideW),
        plain(exact && strideH == 1 && strideW == 1 && padH == 0 && padW == 0) {
    if (plain) rows = h, columns = w;
    channel = static_cast<size_t>(phasesH) * phasesW * rows * columns;
  }
  int off(int c, int a, int b) const {
    const int y = a * dilH, x = b * dilW;
    return static_cast<int>((static_cast<size_t>(c * phasesH + y % strideH) * phasesW + x % strideW) * rows * columns +
                            static_cast<size_t>(y / strideH) * columns + x / strideW);
  }
  void build(const float* x, int channels, float* d) const {
    for (int c = 0; c < channels; ++c, x += static_cast<size_t>(h) * w, d += channel) plane(x, d);
  }
  void plane(const float* x, float* d) const {
    if (strideW == 2) return strideTwo(x, d);
    for (int r = 0; r < phasesH; ++r)
      for (int q = 0; q < phasesW; ++q)
        for (int y = 0; y < rows; ++y, d += columns) row(x, y * strideH + r - padH, q, d);
  }
  // plane() for a stride of two along rows: numbers padW .. padW + w - 1 of a padded row of x are its own, the even ones go to
  // the first phase. In strips, of which masks are computed once.
  void strideTwo(const float* x, float* d) const {
    constexpr int kStrip = 8;  // vectors of each phase
    const size_t phase = static_cast<size_t>(rows) * columns;
    const auto part = [&](int first) { return lanes(std::clamp(first, 0, VL), std::clamp(first + w, 0, VL)); };
    for (int i0 = 0; i0 < columns; i0 += kStrip * VL) {
      const int vectors = std::min(kStrip, (columns - i0 + VL - 1) / VL);
      Mask low[kStrip], high[kStrip], out[kStrip];
      for (int v = 0; v < vectors; ++v) {
        const int i = i0 + v * VL;
        low[v] = part(padW - 2 * i), high[v] = part(padW - 2 * i - VL), out[v] = lanes(0, std::min(VL, columns - i));
      }
      float* to = d + i0;
      for (int y = 0; y < rows; ++y, to += columns)
        for (int r = 0; r < phasesH; ++r) {
          const int from = y * strideH + r - padH;
          const bool inside = from >= 0 && from < h;
          const float* s = x + static_cast<ptrdiff_t>(inside ? from : 0) * w + (2 * i0 - padW);
          float* even = to + static_cast<size_t>(r * phasesW) * phase;
          for (int i = 0; inside && i < std::min(w, 2 * kStrip * VL); i += kLine) __builtin_prefetch(s + h * w + i);
          for (int v = 0; v < vectors; ++v, s += 2 * VL, even += VL) {
            const V a = inside ? load(low[v], s) : zero(), b = inside ? load(high[v], s + VL) : zero();
            store(out[v], even, evens(a, b));
            if (phasesW == 2) store(out[v], even + phase, odds(a, b));
          }
        }
    }
  }
  void row(const float* x, int from, int q, float* d) const {
    if (from < 0 || from >= h) {
      std::memset(d, 0, static_cast<size_t>(columns) * 4);
      return;
    }
    int x0 = 0;
    while (x0 < columns && x0 * strideW + q - padW < 0) d[x0++] = 0;
    const int x1 = std::max(x0, std::min(columns, w - 1 - q + padW < 0 ? 0 : (w - 1 - q + padW) / strideW + 1));
    const float* s = x + static_cast<size_t>(from) * w + (static_cast<ptrdiff_t>(x0) * strideW + q - padW);
    if (strideW == 1)
      copyRow(s, x1 - x0, d + x0);
    else
      for (int i = 0; i < x1 - x0; ++i) d[x0 + i] = s[static_cast<ptrdiff_t>(i) * strideW];
    for (int i = x1; i < columns; ++i) d[i] = 0;
  }
};

// build(image, first channel, channels) for all, a few channels a task.
template <class Build>
void buildTogether(Context& context, int images, int channels, const Build& build) {
  const int block = std::clamp(images * channels / (4 * context.pool().size()), 1, 8);
  const int blocks = (channels + block - 1) / block;
  context.pool().run(images * blocks, [&](int i, int) {
    const int c0 = i % blocks * block;
    build(i / blocks, c0, std::min(block, channels - c0));
  });
}

// Runs body(first, last, lane) over so many planes of `positions` numbers, some thousand numbers a task.
template <class Body>
void eachPlanes(Context& context, int planes, int positions, const Body& body) {
  const int some = std::clamp(4096 / std::max(1, positions), 1, std::max(1, planes));
  context.pool().run((planes + some - 1) / some,
                     [&](int t, int lane) { body(t * some, std::min(planes, (t + 1) * some), lane); });
}

// The planes of images x [n][ic][h][w], [image][channel] in `to`.
inline void buildTogether(Context& context, const ConvShape& s, const Planes& planes, int n, const float* x,
                          float* to) {
  const size_t plane = static_cast<size_t>(s.h) * s.w;
  buildTogether(context, n, s.ic, [&](int i, int c0, int channels) {
    const size_t first = static_cast<size_t>(i) * s.ic + static_cast<size_t>(c0);
    planes.build(x + first * plane, channels, to + first * planes.channel);
  });
}

}  // namespace crema::kernels::KNS
