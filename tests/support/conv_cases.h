// Convolutions of given shapes against double loops, forward and backward.
#pragma once
#include <vector>

#include "support/kernel_bits.h"

namespace crema::kernels {

struct ConvCase {
  const char* name;
  ConvShape s;
};

inline void checkBiasOf(const ConvShape& s, const std::vector<float>& dy) {
  const Surrounded dys(dy);
  const auto dyd = wide(dy), dym = magnitudes(dyd);
  std::vector<double> bias(static_cast<size_t>(s.oc), 0.25), biasScale(static_cast<size_t>(s.oc), 0.25);
  ref::convBackwardBias(s, dyd.data(), bias.data(), true);
  ref::convBackwardBias(s, dym.data(), biasScale.data(), true);
  near("bias",
       sameBits("bias", bias.size(), 0.25f,
                [&](Context& k, float* db) { convBackwardBias(k, s, dys.data(), db, true); }),
       bias, biasScale);
}

inline void checkConv(const ConvCase& c) {
  SCOPED_TRACE(c.name);
  const ConvShape& s = c.s;
  const size_t in = static_cast<size_t>(s.n) * s.ic * s.h * s.w,
               out = static_cast<size_t>(s.n) * s.oc * s.oh() * s.ow(),
               weights = static_cast<size_t>(s.oc) * (s.ic / s.groups) * s.kh * s.kw;
  const auto x = numbers(in, 1), w = numbers(weights, 2), b = numbers(static_cast<size_t>(s.oc), 3),
             dy = numbers(out, 4);
  const Surrounded xs(x), ws(w), bs(b), dys(dy);
  const auto xd = wide(x), wd = wide(w), bd = wide(b), dyd = wide(dy);
  const auto xm = magnitudes(xd), wm = magnitudes(wd), bm = magnitudes(bd), dym = magnitudes(dyd);
  std::vector<double> want(out), scale(out);
  ref::convForward(s, xd.data(), wd.data(), bd.data(), want.data());
  ref::convForward(s, xm.data(), wm.data(), bm.data(), scale.data());
  near("forward",
       sameBits("forward", out, NAN,
                [&](Context& k, float* y) { convForward(k, s, xs.data(), ws.data(), bs.data(), y); }),
       want, scale);
  want.resize(in), scale.resize(in);
  ref::convBackwardData(s, dyd.data(), wd.data(), want.data());
  ref::convBackwardData(s, dym.data(), wm.data(), scale.data());
  near("back to data",
       sameBits("back to data", in, NAN,
                [&](Context& k, float* dx) { convBackwardData(k, s, dys.data(), ws.data(), dx); }),
       want, scale);
  want.resize(weights), scale.resize(weights);
  for (bool accumulate : {false, true}) {
    std::fill(want.begin(), want.end(), 0.5), std::fill(scale.begin(), scale.end(), 0.5);
    ref::convBackwardWeights(s, xd.data(), dyd.data(), want.data(), accumulate);
    ref::convBackwardWeights(s, xm.data(), dym.data(), scale.data(), accumulate);
    near("weights",
         sameBits("weights", weights, 0.5f,
                  [&](Context& k, float* dw) { convBackwardWeights(k, s, xs.data(), dys.data(), dw, accumulate); }),
         want, scale);
  }
  checkBiasOf(s, dy);
}

}  // namespace crema::kernels
