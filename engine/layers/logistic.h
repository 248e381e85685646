// The logistic function. exp(-x) overflows to inf for x below -88 (float), and the result is then 0, the correct limit.
#pragma once
#include <cmath>

namespace crema::layers {

template <class T>
T logistic(T x) {
  return T(1) / (T(1) + std::exp(-x));
}

}  // namespace crema::layers
