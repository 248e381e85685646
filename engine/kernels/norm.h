// Batch normalisation in training, with the layers in place that usually stand behind it. On a blob seen as outer x
// channels x inner, inner > 1; m = outer * inner:
//   mean = sum of x / m,  variance = sum of (x - mean)^2 / m,  factor = 1 / sqrt(variance + eps), for each channel
//   v = (x - mean) factor;  z = scale v + offset, if scaled;  y = z > 0 ? z : slope z, if rectified
// A channel is taken at a time, so that its numbers are read from memory once and then from a cache: one read of x and one
// write of y, where the layers by themselves make seven reads and five writes.
//
// Bits are those of channelSums(), channelDots(), channelAffine(), reluForward() and their like, one after the other.
#pragma once
#include "kernels/channels.h"

namespace crema::kernels {

template <class T>
struct NormSteps {
  bool scaled = false, rectified = false;
  const T *scale = nullptr, *offset = nullptr;  // of each channel, where scaled; null offset: 0
  T slope = 0;
};

struct NormNumbers {  // of each channel
  double *mean, *variance, *factor;
};

// y may be x.
template <class T>
void normForward(Context& c, const ChannelShape& s, double eps, const T* x, const NormSteps<T>& steps, T* y,
                 const NormNumbers& numbers) {
  tableOf<T>(c).normForward(c, s, eps, x, steps, y, numbers);
}

// Sums for each channel, where scaled: dscale = sum of dz v, doffset = sum of dz.
struct NormSums {
  double *scale = nullptr, *offset = nullptr;
};

// dx = factor (dv - mean(dv) - v mean(dv v)). dx may be dy.
template <class T>
void normBackward(Context& c, const ChannelShape& s, const T* x, const NormNumbers& numbers, const NormSteps<T>& steps,
                  const T* dy, T* dx, const NormSums& sums) {
  tableOf<T>(c).normBackward(c, s, x, numbers, steps, dy, dx, sums);
}

}  // namespace crema::kernels

#include "kernels/table.h"  // after the declarations, whose types it uses
