// Pooling: 16 planes at a time, transposed to [position][16], so that a window is a plain loop over vectors of 16 planes, whatever the
// kernel, stride and padding.
namespace crema::kernels::KNS {

constexpr int kPlanes = 16;

// 16 rows of n values, ls apart -> [n][16], and back. Fewer planes: the others are zero, or not written.
inline void planesIn(const float* s, ptrdiff_t ls, int planes, int n, float* d) {
  if (planes == kPlanes && n >= 8) {
    for (int c = 0;; c = std::min(c + 8, n - 8)) {
      transpose8(s + c, ls, d + static_cast<size_t>(c) * kPlanes, kPlanes);
      transpose8(s + 8 * ls + c, ls, d + static_cast<size_t>(c) * kPlanes + 8, kPlanes);
      if (c == n - 8) break;
    }
    return;
  }
  for (int c = 0; c < n; ++c)
    for (int r = 0; r < kPlanes; ++r) d[static_cast<size_t>(c) * kPlanes + r] = r < planes ? s[r * ls + c] : 0.f;
}

inline void planesOut(const float* s, int n, int planes, float* d, ptrdiff_t ld) {
  if (planes == kPlanes && n >= 8) {
    for (int c = 0;; c = std::min(c + 8, n - 8)) {
      transpose8(s + static_cast<size_t>(c) * kPlanes, kPlanes, d + c, ld);
      transpose8(s + static_cast<size_t>(c) * kPlanes + 8, kPlanes, d + 8 * ld + c, ld);
      if (c == n - 8) break;
    }
    return;
  }
  for (int r = 0; r < planes; ++r)
    for (int c = 0; c < n; ++c) d[r * ld + c] = s[static_cast<size_t>(c) * kPlanes + r];
}

// Calls use(output position, y0, y1, x0, x1, divisor) for output rows [r0, r1): the window's part inside the image, AVE's divisor.
template <class Use>
INL void eachWindow(const PoolShape& s, int r0, int r1, Use use) {
  for (int oy = r0; oy < r1; ++oy)
    for (int ox = 0; ox < s.ow; ++ox) {
      const int top = oy * s.strideH - s.padH, left = ox * s.strideW - s.padW;
      const int height = std::max(0, std::min(top + s.kh, s.h + s.padH) - top), width = std::max(0, std::min(left + s.kw, s.w + s.padW) - left);
      use(oy * s.ow + ox, std::max(top, 0), std::min(top + s.kh, s.h), std::max(left, 0), std::min(left + s.kw, s.w), height * width);
    }
}

// Runs body(block of 16 planes, how many there are, lane) over all planes.
template <class Body>
void eachBlock(Context& context, const PoolShape& s, Body body) {
  const int planes = s.n * s.c, blocks = (planes + kPlanes - 1) / kPlanes;
  context.pool().run(blocks, [&](int b, int lane) { body(b, std::min(kPlanes, planes - b * kPlanes), lane); });
}

// Body(in: rows [first, ...) transposed, first row, output position, window) fills one [16] of the output strip at `out`.
template <class Window>
void poolForward(Context& context, const PoolShape& s, const float* x, float* y, Window window) {
  const int hw = s.h * s.w, P = s.oh * s.ow, strip = std::max(1, 2048 / std::max(1, s.w * s.strideH));
  eachBlock(context, s, [&](int b, int planes, int lane) {
    const size_t inSize = static_cast<size_t>(strip * s.strideH + s.kh) * s.w * kPlanes;
    float* in = context.scratch().lane[static_cast<size_t>(lane)].planes.get(inSize + static_cast<size_t>(strip) * s.ow * kPlanes);
    float* out = in + inSize;
    for (int r0 = 0; r0 < s.oh; r0 += strip) {
      const int r1 = std::min(r0 + strip, s.oh);
      const int first = std::min(s.h, std::max(0, r0 * s.strideH - s.padH)), last = std::max(first, std::min(s.h, (r1 - 1) * s.strideH - s.padH + s.kh));
      planesIn(x + static_cast<size_t>(b) * kPlanes * hw + static_cast<size_t>(first) * s.w, hw, planes, (last - first) * s.w, in);
      eachWindow(s, r0, r1, [&](int o, int y0, int y1, int x0, int x1, int divisor) {
        window(b, planes, o, in - static_cast<ptrdiff_t>(first) * s.w * kPlanes, y0, y1, x0, x1, divisor, out + static_cast<size_t>(o - r0 * s.ow) * kPlanes);
      });
      planesOut(out, (r1 - r0) * s.ow, planes, y + static_cast<size_t>(b) * kPlanes * P + static_cast<size_t>(r0) * s.ow, P);
    }
  });
}

inline void maxPoolForward(Context& context, const PoolShape& s, const float* x, float* y, int32_t* mask) {
  const int P = s.oh * s.ow;
  poolForward(context, s, x, y, [&](int b, int planes, int o, const float* in, int y0, int y1, int x0, int x1, int, float* out) {
    alignas(64) float winner[kPlanes];  // tap number in the window; exact in float
    for (int v = 0; v < kPlanes; v += VL) {
      V best = zero(), at = set1(-1.f);
      float tap = 0;
      for (int h = y0; h < y1; ++h)
        for (int w = x0; w < x1; ++w, tap += 1) {
          const V t = load(in + static_cast<ptrdiff_t>(h * s.w + w) * kPlanes + v);
          if (tap == 0) { best = t, at = zero(); continue; }
          const Mask m = greater(t, best);
          best = select(m, t, best);
          at = select(m, set1(tap), at);
        }
      store(out + v, best);
      store(winner + v, at);
    }
    int32_t* to = mask + static_cast<size_t>(b) * kPlanes * P + o;
    const int width = x1 - x0;
    for (int l = 0; l < planes; ++l) {
      const int tap = static_cast<int>(winner[l]);
      to[static_cast<size_t>(l) * P] = tap < 0 ? -1 : (y0 + tap / width) * s.w + x0 + tap % width;
    }
  });
}

inline void maxPoolBackward(Context& context, const PoolShape& s, const float* dy, const int32_t* mask, float* dx) {
  const int P = s.oh * s.ow, hw = s.h * s.w;
  eachBlock(context, s, [&](int b, int planes, int) {
    for (int p = b * kPlanes; p < b * kPlanes + planes; ++p) {  // a scalar scatter in scan order beats vectors here
      float* d = dx + static_cast<size_t>(p) * hw;
      std::memset(d, 0, static_cast<size_t>(hw) * 4);
      const float* g = dy + static_cast<size_t>(p) * P;
      const int32_t* m = mask + static_cast<size_t>(p) * P;
      for (int i = 0; i < P; ++i)
        if (m[i] >= 0) d[m[i]] += g[i];
    }
  });
}

inline void avePoolForward(Context& context, const PoolShape& s, const float* x, float* y) {
  poolForward(context, s, x, y, [&](int, int, int, const float* in, int y0, int y1, int x0, int x1, int divisor, float* out) {
    const V size = set1(static_cast<float>(std::max(1, divisor)));
    for (int v = 0; v < kPlanes; v += VL) {
      V sum = zero();
      for (int h = y0; h < y1; ++h)
        for (int w = x0; w < x1; ++w) sum = add(sum, load(in + static_cast<ptrdiff_t>(h * s.w + w) * kPlanes + v));
      store(out + v, div(sum, size));
    }
  });
}

inline void avePoolBackward(Context& context, const PoolShape& s, const float* dy, float* dx) {
  const int P = s.oh * s.ow, hw = s.h * s.w;
  eachBlock(context, s, [&](int b, int planes, int lane) {
    float* d = context.scratch().lane[static_cast<size_t>(lane)].planes.get(static_cast<size_t>(hw + P) * kPlanes);
    float* g = d + static_cast<size_t>(hw) * kPlanes;
    planesIn(dy + static_cast<size_t>(b) * kPlanes * P, P, planes, P, g);
    std::memset(d, 0, static_cast<size_t>(hw) * kPlanes * 4);
    eachWindow(s, 0, s.oh, [&](int o, int y0, int y1, int x0, int x1, int divisor) {
      const V size = set1(static_cast<float>(std::max(1, divisor)));
      for (int v = 0; v < kPlanes; v += VL) {
        const V t = div(load(g + static_cast<size_t>(o) * kPlanes + v), size);
        for (int h = y0; h < y1; ++h)
          for (int w = x0; w < x1; ++w) {
            float* q = d + static_cast<size_t>(h * s.w + w) * kPlanes + v;
            store(q, add(load(q), t));
          }
      }
    });
    planesOut(d, hw, planes, dx + static_cast<size_t>(b) * kPlanes * hw, hw);
  });
}

}  // namespace crema::kernels::KNS
