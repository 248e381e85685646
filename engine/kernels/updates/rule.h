// What the update rules of solvers are written with; list.h says what a rule is.
#pragma once
#include <cmath>
#include <type_traits>

#include "base/error.h"

namespace crema::kernels {

// The gradient of one weight in its parts: what the loss gives, diff scale (scale carries 1/iter_size, 1/ranks and
// clipping), and what weight_decay adds, decay w (L2) or decay sign(w) (L1). N is float (whole() is fused and rounds
// once) or double.
template <class N>
struct Gradient {
  N diff, scale, penalty;
  [[gnu::always_inline]] N whole() const {
    if constexpr (std::is_same_v<N, float>)
      return std::fma(diff, scale, penalty);
    else
      return diff * scale + penalty;
  }
};

// The learning rate of one parameter: lr_policy's for this iteration, and the parameter's lr_mult.
struct Rate {
  double policy = 0, multiplier = 1;
  double value() const { return policy * multiplier; }
};

// Checks of a solver's fields that several rules share.
inline void checkShare(const char* field, float value) {
  if (!(value >= 0 && value < 1)) invalid("{} should lie between 0 and 1: 0 <= {} < 1, not {}", field, field, value);
}
inline void checkMomentumIsFinite(float momentum) {
  if (!std::isfinite(momentum)) invalid("momentum should be a number, not {}", momentum);
}
inline void refuseMomentum(const char* type, float momentum) {
  checkMomentumIsFinite(momentum);
  if (momentum != 0)
    invalid("Momentum cannot be used with {}. Remove momentum ({}) or take another type", type, momentum);
}
inline void checkDelta(float delta) {
  if (!(delta >= 0)) invalid("delta keeps the division finite and must not be negative, not {}", delta);
}

}  // namespace crema::kernels
