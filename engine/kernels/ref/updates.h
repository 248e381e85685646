#pragma once
#include <cmath>

#include "kernels/kernels.h"

namespace crema::kernels::ref {
// One weight's update by the table in kernels.h, in double.
template <class T>
double change(const Update& u, double g, T* h, T* h2, int64_t i) {
  const double before = h[i], m = u.momentum, r = u.decayOfSquares;
  const auto keep = [i](T* history, double value) {
    history[i] = static_cast<T>(value);
    return static_cast<double>(history[i]);
  };
  switch (u.rule) {
    case UpdateRule::kSgd:
      return keep(h, m * before + u.rate * g);
    case UpdateRule::kNesterov:
      return (1 + m) * keep(h, m * before + u.rate * g) - m * before;
    case UpdateRule::kAdaGrad:
      return u.rate * g / (std::sqrt(keep(h, before + g * g)) + u.delta);
    case UpdateRule::kRmsProp:
      return u.rate * g / (std::sqrt(keep(h, r * before + (1 - r) * g * g)) + u.delta);
    case UpdateRule::kAdaDelta: {
      const double v = g * std::sqrt((h2[i] + u.delta) / (keep(h, m * before + (1 - m) * g * g) + u.delta));
      keep(h2, m * h2[i] + (1 - m) * v * v);
      return u.rate * v;
    }
    case UpdateRule::kAdam: {
      const double mean = keep(h, m * before + (1 - m) * g), square = keep(h2, r * h2[i] + (1 - r) * g * g);
      return u.rate * mean / (std::sqrt(square) + u.delta);
    }
  }
  return 0;
}

template <class T>
void update(int64_t count, const Update& u, const T* diff, T* h, T* h2, T* w) {
  for (int64_t i = 0; i < count; ++i) {
    const double sign = (w[i] > 0) - (w[i] < 0);
    const double g = diff[i] * u.scale + u.decay * (u.l1 ? sign : w[i]);
    w[i] -= static_cast<T>(change(u, g, h, h2, i));
  }
}

}  // namespace crema::kernels::ref
