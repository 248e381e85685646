// Convolutions of given shapes against double loops, forward and backward.
#pragma once
#include <vector>

#include "support/kernel_bits.h"

namespace crema::kernels {

struct ConvCase {
  const char* name;
  ConvShape s;
};

// Operands of a convolution: the numbers, and the same as kernels get them.
struct ConvOperands {
  explicit ConvOperands(const ConvShape& s)
      : in(static_cast<size_t>(s.n) * s.ic * s.h * s.w),
        out(static_cast<size_t>(s.n) * s.oc * s.oh() * s.ow()),
        weights(static_cast<size_t>(s.oc) * (s.ic / s.groups) * s.kh * s.kw),
        x(numbers(in, 1)),
        w(numbers(weights, 2)),
        b(numbers(static_cast<size_t>(s.oc), 3)),
        dy(numbers(out, 4)) {}
  size_t in, out, weights;
  std::vector<float> x, w, b, dy;
  Surrounded xs{x}, ws{w}, bs{b}, dys{dy};
};

inline void checkBiasOf(const ConvShape& s, const ConvOperands& o) {
  const auto dyd = wide(o.dy), dym = magnitudes(dyd);
  std::vector<double> bias(static_cast<size_t>(s.oc), 0.25), biasScale(static_cast<size_t>(s.oc), 0.25);
  ref::convBackwardBias(s, dyd.data(), bias.data(), true);
  ref::convBackwardBias(s, dym.data(), biasScale.data(), true);
  near("bias",
       sameBits("bias", bias.size(), 0.25f,
                [&](Context& k, float* db) { convBackwardBias(k, s, o.dys.data(), db, true); }),
       bias, biasScale);
}

inline void checkConv(const ConvCase& c) {
  SCOPED_TRACE(c.name);
  const ConvShape& s = c.s;
  const ConvOperands o(s);
  const auto xd = wide(o.x), wd = wide(o.w), bd = wide(o.b), dyd = wide(o.dy);
  const auto xm = magnitudes(xd), wm = magnitudes(wd), bm = magnitudes(bd), dym = magnitudes(dyd);
  std::vector<double> want(o.out), scale(o.out);
  ref::convForward(s, xd.data(), wd.data(), bd.data(), want.data());
  ref::convForward(s, xm.data(), wm.data(), bm.data(), scale.data());
  near("forward",
       sameBits("forward", o.out, NAN,
                [&](Context& k, float* y) { convForward(k, s, o.xs.data(), o.ws.data(), o.bs.data(), y); }),
       want, scale);
  want.resize(o.in), scale.resize(o.in);
  ref::convBackwardData(s, dyd.data(), wd.data(), want.data());
  ref::convBackwardData(s, dym.data(), wm.data(), scale.data());
  near("back to data",
       sameBits("back to data", o.in, NAN,
                [&](Context& k, float* dx) { convBackwardData(k, s, o.dys.data(), o.ws.data(), dx); }),
       want, scale);
  want.resize(o.weights), scale.resize(o.weights);
  for (bool accumulate : {false, true}) {
    std::fill(want.begin(), want.end(), 0.5), std::fill(scale.begin(), scale.end(), 0.5);
    ref::convBackwardWeights(s, xd.data(), dyd.data(), want.data(), accumulate);
    ref::convBackwardWeights(s, xm.data(), dym.data(), scale.data(), accumulate);
    near("weights",
         sameBits("weights", o.weights, 0.5f,
                  [&](Context& k, float* dw) { convBackwardWeights(k, s, o.xs.data(), o.dys.data(), dw, accumulate); }),
         want, scale);
  }
  checkBiasOf(s, o);
}

}  // namespace crema::kernels
