// AdaGrad (Duchi, Hazan and Singer, "Adaptive subgradient methods for online learning and stochastic optimization",
// 2011):
//   h += g^2;   w -= rate g / (sqrt(h) + delta)
// h: one history; delta: not negative; momentum: refused; g: the gradient with its decay.
#pragma once
#include "kernels/updates/rule.h"

namespace crema::kernels {

struct AdaGrad {
  static constexpr const char* kType = "AdaGrad";
  static constexpr int kHistories = 1;

  template <class Solver>
  static void check(const Solver& s) {
    refuseMomentum(kType, s.momentum());
    checkDelta(s.delta());
  }

  template <class Solver>
  AdaGrad(const Solver& s, int) : delta(s.delta()) {}
  double delta;

  template <class T>
  double reference(const Rate& rate, const Gradient<double>& gradient, T& h) const {
    const double g = gradient.whole();
    h = static_cast<T>(h + g * g);
    return rate.value() * g / (std::sqrt(double{h}) + delta);
  }

  [[gnu::always_inline]] float step(const Rate& rate, const Gradient<float>& gradient, float& h) const {
    const auto a = static_cast<float>(rate.value()), d = static_cast<float>(delta);
    const float g = gradient.whole();
    h = std::fma(g, g, h);
    return a * g / (std::sqrt(h) + d);
  }
};

}  // namespace crema::kernels
