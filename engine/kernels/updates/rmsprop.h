// RMSProp (Tieleman and Hinton, "Divide the gradient by a running average of its recent magnitude", lecture 6.5 of
// "Neural networks for machine learning", 2012):
//   h = r h + (1 - r) g^2;   w -= rate g / (sqrt(h) + delta)
// h: one history; r: rms_decay, 0 <= r < 1; delta: not negative; momentum: refused; g: the gradient with its decay.
#pragma once
#include "kernels/updates/rule.h"

namespace crema::kernels {

struct RMSProp {
  static constexpr const char* kType = "RMSProp";
  static constexpr int kHistories = 1;

  template <class Solver>
  static void check(const Solver& s) {
    refuseMomentum(kType, s.momentum());
    checkShare("rms_decay", s.rms_decay());
    checkDelta(s.delta());
  }

  template <class Solver>
  RMSProp(const Solver& s, int) : rmsDecay(s.rms_decay()), delta(s.delta()) {}
  double rmsDecay, delta;

  template <class T>
  double reference(const Rate& rate, const Gradient<double>& gradient, T& h) const {
    const double g = gradient.whole();
    h = static_cast<T>(rmsDecay * h + (1 - rmsDecay) * g * g);
    return rate.value() * g / (std::sqrt(double{h}) + delta);
  }

  [[gnu::always_inline]] float step(const Rate& rate, const Gradient<float>& gradient, float& h) const {
    const auto a = static_cast<float>(rate.value()), d = static_cast<float>(delta);
    const auto r = static_cast<float>(rmsDecay), rest = static_cast<float>(1 - rmsDecay);
    const float g = gradient.whole();
    h = std::fma(r, h, rest * (g * g));
    return a * g / (std::sqrt(h) + d);
  }
};

}  // namespace crema::kernels
