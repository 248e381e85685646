// Pooling that pool_rows.h does not know, and gradients: 16 planes at a time, transposed to [position][16], so that a window
// is a plain loop over vectors of 16 planes, whatever the kernel, stride and padding.
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

struct Window {
  int y0, y1, x0, x1;  // the part inside the image; may be empty
  int divisor;         // AVE's: the window clipped to the padded image
};

// Calls use(output position, window) for output rows [r0, r1).
template <class Use>
INL void eachWindow(const PoolShape& s, int r0, int r1, Use use) {
  for (int oy = r0; oy < r1; ++oy)
    for (int ox = 0; ox < s.ow; ++ox) {
      const int top = oy * s.strideH - s.padH, left = ox * s.strideW - s.padW;
      const int height = std::max(0, std::min(top + s.kh, s.h + s.padH) - top),
                width = std::max(0, std::min(left + s.kw, s.w + s.padW) - left);
      use(oy * s.ow + ox, Window{std::max(top, 0), std::min(top + s.kh, s.h), std::max(left, 0),
                                 std::min(left + s.kw, s.w), height * width});
    }
}

// Runs body(block of 16 planes, how many there are, lane) over all planes.
template <class Body>
void eachBlock(Context& context, const PoolShape& s, Body body) {
  const int planes = s.n * s.c, blocks = (planes + kPlanes - 1) / kPlanes;
  context.pool().run(blocks, [&](int b, int lane) { body(b, std::min(kPlanes, planes - b * kPlanes), lane); });
}

// window(in, window, out) fills one [16] of each of the OUTS output strips; `in` is the first row of the planes,
// transposed, of which only the rows that the strip needs are there.
template <int OUTS, class Fill>
void poolForward(Context& context, const PoolShape& s, const float* x, std::array<float*, OUTS> y, Fill fill) {
  const int hw = s.h * s.w, P = s.oh * s.ow, strip = std::min(s.oh, std::max(1, 2048 / std::max(1, s.w * s.strideH)));
  eachBlock(context, s, [&](int b, int planes, int lane) {
    const size_t inSize = static_cast<size_t>(strip * s.strideH + s.kh) * s.w * kPlanes,
                 outSize = static_cast<size_t>(strip) * s.ow * kPlanes;
    float* in = context.scratch().lane[static_cast<size_t>(lane)].planes.get(inSize + OUTS * outSize);
    for (int r0 = 0; r0 < s.oh; r0 += strip) {
      const int r1 = std::min(r0 + strip, s.oh);
      const int first = std::min(s.h, std::max(0, r0 * s.strideH - s.padH)),
                last = std::max(first, std::min(s.h, (r1 - 1) * s.strideH - s.padH + s.kh));
      planesIn(x + static_cast<size_t>(b) * kPlanes * hw + static_cast<size_t>(first) * s.w, hw, planes,
               (last - first) * s.w, in);
      const float* origin = in - static_cast<ptrdiff_t>(first) * s.w * kPlanes;
      eachWindow(s, r0, r1, [&](int o, const Window& w) {
        float* out[OUTS];
        for (int k = 0; k < OUTS; ++k)
          out[k] = in + inSize + k * outSize + static_cast<size_t>(o - r0 * s.ow) * kPlanes;
        fill(origin, w, out);
      });
      for (int k = 0; k < OUTS; ++k)
        planesOut(in + inSize + k * outSize, (r1 - r0) * s.ow, planes,
                  y[k] + static_cast<size_t>(b) * kPlanes * P + static_cast<size_t>(r0) * s.ow, P);
    }
  });
}

// KEEPS: the index of the maximum as pool_rows.h keeps it.
template <bool KEEPS>
void maxPoolTransposed(Context& context, const PoolShape& s, const float* x, float* y, int32_t* mask) {
  std::array<float*, KEEPS ? 2 : 1> to{y};
  if constexpr (KEEPS) to[1] = reinterpret_cast<float*>(mask);
  poolForward<KEEPS ? 2 : 1>(context, s, x, to, [&](const float* in, const Window& w, float* const* out) {
    for (int v = 0; v < kPlanes; v += VL) {
      V best = zero(), at = set1Bits(-1);
      bool first = true;
      for (int h = w.y0; h < w.y1; ++h)
        for (int c = w.x0; c < w.x1; ++c) {
          const int place = h * s.w + c;
          const V t = load(in + static_cast<ptrdiff_t>(place) * kPlanes + v);
          const Mask m = greater(t, best);
          best = first ? t : select(m, t, best);
          at = first ? set1Bits(place) : select(m, set1Bits(place), at);
          first = false;
        }
      store(out[0] + v, best);
      if constexpr (KEEPS) store(out[1] + v, s.positive ? select(greater(best, zero()), at, set1Bits(-1)) : at);
    }
  });
}

inline void maxPoolForward(Context& context, const PoolShape& s, const float* x, float* y, int32_t* mask) {
  if (!poolsRows(s))
    return mask ? maxPoolTransposed<true>(context, s, x, y, mask) : maxPoolTransposed<false>(context, s, x, y, mask);
  const auto use = [&](const auto& rows, size_t in, size_t out) {
    mask ? rows.template maxima<true>(x + in, y + out, mask + out)
         : rows.template maxima<false>(x + in, y + out, nullptr);
  };
  poolsSquares(s) ? eachPooledPlane(context, s, PoolSquares(s), use) : eachPooledPlane(context, s, use);
}

inline void maxPoolBackward(Context& context, const PoolShape& s, const float* dy, const int32_t* mask, float* dx) {
  const int P = s.oh * s.ow, hw = s.h * s.w;
  eachBlock(context, s, [&](int b, int planes, int) {
    // A scalar scatter in scan order is faster than vectors here.
    for (int p = b * kPlanes; p < b * kPlanes + planes; ++p) {
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
  if (poolsRows(s))
    return eachPooledPlane(context, s,
                           [&](const auto& rows, size_t in, size_t out) { rows.averages(x + in, y + out); });
  poolForward<1>(context, s, x, {y}, [&](const float* in, const Window& w, float* const* out) {
    const V size = set1(static_cast<float>(std::max(1, w.divisor)));
    for (int v = 0; v < kPlanes; v += VL) {
      V sum = zero();
      for (int h = w.y0; h < w.y1; ++h)
        for (int c = w.x0; c < w.x1; ++c) sum = add(sum, load(in + static_cast<ptrdiff_t>(h * s.w + c) * kPlanes + v));
      store(out[0] + v, div(sum, size));
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
    eachWindow(s, 0, s.oh, [&](int o, const Window& w) {
      const V size = set1(static_cast<float>(std::max(1, w.divisor)));
      for (int v = 0; v < kPlanes; v += VL) {
        const V t = div(load(g + static_cast<size_t>(o) * kPlanes + v), size);
        for (int h = w.y0; h < w.y1; ++h)
          for (int c = w.x0; c < w.x1; ++c) {
            float* q = d + static_cast<size_t>(h * s.w + c) * kPlanes + v;
            store(q, add(load(q), t));
          }
      }
    });
    planesOut(d, hw, planes, dx + static_cast<size_t>(b) * kPlanes * hw, hw);
  });
}

}  // namespace crema::kernels::KNS
