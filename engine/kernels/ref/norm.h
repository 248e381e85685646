// Batch normalisation and what stands behind it, one layer after the other.
#pragma once
#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/norm.h"
#include "kernels/ref/channels.h"

namespace crema::kernels::ref {

inline double perChannel(const ChannelShape& s) { return std::max(1.0, double(s.outer) * s.inner); }

template <class T>
void normForward(const ChannelShape& s, double eps, const T* x, const NormSteps<T>& steps, T* y,
                 const NormNumbers& to) {
  channelSums(s, x, to.mean);
  for (int c = 0; c < s.channels; ++c) to.mean[c] /= perChannel(s);
  channelDots(s, x, to.mean, x, to.mean, to.variance);
  for (int c = 0; c < s.channels; ++c)
    to.variance[c] /= perChannel(s), to.factor[c] = 1 / std::sqrt(to.variance[c] + eps);
  channelAffine(s, x, to.mean, to.factor, nullptr, y);
  eachElement(s, [&](int c, int64_t i) {
    if (steps.scaled) y[i] = std::fma(y[i], steps.scale[c], steps.offset ? steps.offset[c] : T(0));
    if (steps.rectified) y[i] = y[i] > 0 ? y[i] : y[i] * steps.slope;
  });
}

template <class T>
void normBackward(const ChannelShape& s, const T* x, const NormNumbers& numbers, const NormSteps<T>& steps, const T* dy,
                  T* dx, const NormSums& sums) {
  const auto count = static_cast<size_t>(s.outer) * static_cast<size_t>(s.channels) * static_cast<size_t>(s.inner);
  const auto channels = static_cast<size_t>(s.channels);
  std::vector<T> v(count), dv(dy, dy + count);
  channelAffine(s, x, numbers.mean, numbers.factor, nullptr, v.data());
  eachElement(s, [&](int c, int64_t i) {
    const T z = steps.scaled ? std::fma(v[i], steps.scale[c], steps.offset ? steps.offset[c] : T(0)) : v[i];
    if (steps.rectified && !(z > 0)) dv[i] *= steps.slope;
  });
  if (steps.scaled) {
    channelDots<T>(s, dv.data(), nullptr, v.data(), nullptr, sums.scale);
    channelSums(s, dv.data(), sums.offset);
    eachElement(s, [&](int c, int64_t i) { dv[i] *= steps.scale[c]; });
  }
  std::vector<double> ofDv(channels), ofBoth(channels);
  channelSums(s, dv.data(), ofDv.data());
  channelDots<T>(s, dv.data(), nullptr, x, numbers.mean, ofBoth.data());
  for (size_t c = 0; c < channels; ++c) {
    const double r = numbers.factor[c], m = perChannel(s);
    ofDv[c] /= m, ofBoth[c] *= -r * r / m;
  }
  channelMix(s, dv.data(), ofDv.data(), x, numbers.mean, ofBoth.data(), numbers.factor, dx);
}

}  // namespace crema::kernels::ref
