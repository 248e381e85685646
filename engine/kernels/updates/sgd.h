// SGD, stochastic gradient descent with momentum (Bottou, "Stochastic gradient descent tricks", 2012):
//   h = m h + rate g;   w -= h
// h: one history; m: momentum, any finite number; g: the gradient with its decay.
#pragma once
#include "kernels/updates/rule.h"

namespace crema::kernels {

struct SGD {
  static constexpr const char* kType = "SGD";
  static constexpr int kHistories = 1;

  template <class Solver>
  static void check(const Solver& s) {
    checkMomentumIsFinite(s.momentum());
  }

  template <class Solver>
  SGD(const Solver& s, int) : momentum(s.momentum()) {}
  double momentum;

  template <class T>
  double reference(const Rate& rate, const Gradient<double>& gradient, T& h) const {
    h = static_cast<T>(momentum * h + rate.value() * gradient.whole());
    return h;
  }

  [[gnu::always_inline]] float step(const Rate& rate, const Gradient<float>& gradient, float& h) const {
    const auto m = static_cast<float>(momentum), a = static_cast<float>(rate.value());
    return h = std::fma(m, h, a * gradient.whole());
  }
};

}  // namespace crema::kernels
