// Adam (Kingma and Ba, "Adam: a method for stochastic optimization", 2015):
//   h = m h + (1 - m) g;   h2 = r h2 + (1 - r) g^2;   w -= rate sqrt(1 - r^t) / (1 - m^t) h / (sqrt(h2) + delta)
// h, h2: two histories; m: momentum, 0 <= m < 1; r: momentum2, 0 <= r < 1; delta: not negative; t: iterations from 1;
// g: the gradient with its decay. The factor of rate corrects means that start at 0 (the paper's section 3).
#pragma once
#include "kernels/updates/rule.h"

namespace crema::kernels {

struct Adam {
  static constexpr const char* kType = "Adam";
  static constexpr int kHistories = 2;

  template <class Solver>
  static void check(const Solver& s) {
    checkShare("momentum", s.momentum());
    checkShare("momentum2", s.momentum2());
    checkDelta(s.delta());
  }

  template <class Solver>
  Adam(const Solver& s, int iteration) : momentum(s.momentum()), momentum2(s.momentum2()), delta(s.delta()) {
    const double t = iteration + 1.0;
    correction = std::sqrt(1 - std::pow(momentum2, t)) / (1 - std::pow(momentum, t));
  }
  double momentum, momentum2, delta, correction;

  // The order of the factors is fixed: another one would change the last bit of the weights.
  double corrected(const Rate& rate) const { return rate.policy * correction * rate.multiplier; }

  template <class T>
  double reference(const Rate& rate, const Gradient<double>& gradient, T& h, T& h2) const {
    const double g = gradient.whole();
    h = static_cast<T>(momentum * h + (1 - momentum) * g);
    h2 = static_cast<T>(momentum2 * h2 + (1 - momentum2) * g * g);
    return corrected(rate) * h / (std::sqrt(double{h2}) + delta);
  }

  [[gnu::always_inline]] float step(const Rate& rate, const Gradient<float>& gradient, float& h, float& h2) const {
    const auto a = static_cast<float>(corrected(rate)), d = static_cast<float>(delta);
    const auto m = static_cast<float>(momentum), restOfM = static_cast<float>(1 - momentum);
    const auto r = static_cast<float>(momentum2), restOfR = static_cast<float>(1 - momentum2);
    const float g = gradient.whole();
    h = std::fma(m, h, restOfM * g);
    h2 = std::fma(r, h2, restOfR * (g * g));
    return a * h / (std::sqrt(h2) + d);
  }
};

}  // namespace crema::kernels
