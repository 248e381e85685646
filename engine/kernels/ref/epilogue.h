// The steps of epilogue.h, one after the other over all outputs.
#pragma once
#include <cmath>
#include <cstdint>

#include "kernels/epilogue.h"

namespace crema::kernels::ref {

template <class T>
T stepped(const Step<T>& step, int64_t channel, T y, int64_t at) {
  const auto of = [channel](const T* numbers) { return numbers ? numbers[channel] : T(0); };
  if (step.kind == Step<T>::kAffine) return std::fma(y - of(step.shift), of(step.factor), of(step.offset));
  if (step.kind == Step<T>::kRelu) return y > 0 ? y : y * step.slope;
  return y + step.other[at];
}

// y [items][channels][plane]
template <class T>
void applySteps(const Epilogue<T>& steps, int64_t items, int64_t channels, int64_t plane, T* y) {
  for (const Step<T>& step : steps)
    for (int64_t i = 0; i < items * channels * plane; ++i) y[i] = stepped(step, i / plane % channels, y[i], i);
}

}  // namespace crema::kernels::ref
