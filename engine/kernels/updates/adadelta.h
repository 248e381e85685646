// AdaDelta (Zeiler, "ADADELTA: an adaptive learning rate method", 2012):
//   h = m h + (1 - m) g^2;   v = g sqrt((h2 + delta) / (h + delta));   h2 = m h2 + (1 - m) v^2;   w -= rate v
// h, h2: two histories; m: momentum, 0 <= m <= 1 (1 keeps the histories as they are; Caffe allows it); delta: not
// negative; g: the gradient with its decay.
#pragma once
#include "kernels/updates/rule.h"

namespace crema::kernels {

struct AdaDelta {
  static constexpr const char* kType = "AdaDelta";
  static constexpr int kHistories = 2;

  template <class Solver>
  static void check(const Solver& s) {
    if (s.momentum() != 1) checkShare("momentum", s.momentum());
    checkDelta(s.delta());
  }

  template <class Solver>
  AdaDelta(const Solver& s, int) : momentum(s.momentum()), delta(s.delta()) {}
  double momentum, delta;

  template <class T>
  double reference(const Rate& rate, const Gradient<double>& gradient, T& h, T& h2) const {
    const double g = gradient.whole();
    h = static_cast<T>(momentum * h + (1 - momentum) * g * g);
    const double v = g * std::sqrt((h2 + delta) / (h + delta));
    h2 = static_cast<T>(momentum * h2 + (1 - momentum) * v * v);
    return rate.value() * v;
  }

  [[gnu::always_inline]] float step(const Rate& rate, const Gradient<float>& gradient, float& h, float& h2) const {
    const auto a = static_cast<float>(rate.value()), d = static_cast<float>(delta);
    const auto m = static_cast<float>(momentum), rest = static_cast<float>(1 - momentum);
    const float g = gradient.whole();
    h = std::fma(m, h, rest * (g * g));
    const float v = g * std::sqrt((h2 + d) / (h + d));
    h2 = std::fma(m, h2, rest * (v * v));
    return a * v;
  }
};

}  // namespace crema::kernels
