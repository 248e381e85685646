// Nesterov's accelerated gradient as Sutskever et al. write it ("On the importance of initialization and momentum in
// deep learning", 2013):
//   h' = m h + rate g;   w -= (1 + m) h' - m h
// h: one history; m: momentum, any finite number; g: the gradient with its decay.
#pragma once
#include "kernels/updates/rule.h"

namespace crema::kernels {

struct Nesterov {
  static constexpr const char* kType = "Nesterov";
  static constexpr int kHistories = 1;

  template <class Solver>
  static void check(const Solver& s) {
    checkMomentumIsFinite(s.momentum());
  }

  template <class Solver>
  Nesterov(const Solver& s, int) : momentum(s.momentum()) {}
  double momentum;

  template <class T>
  double reference(const Rate& rate, const Gradient<double>& gradient, T& h) const {
    const double before = h;
    h = static_cast<T>(momentum * before + rate.value() * gradient.whole());
    return (1 + momentum) * h - momentum * before;
  }

  [[gnu::always_inline]] float step(const Rate& rate, const Gradient<float>& gradient, float& h) const {
    const auto m = static_cast<float>(momentum), a = static_cast<float>(rate.value());
    const float before = h;
    h = std::fma(m, before, a * gradient.whole());
    return h + m * (h - before);
  }
};

}  // namespace crema::kernels
