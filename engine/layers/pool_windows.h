// Pooling over explicit lists of windows: SPP's bins and stochastic pooling. (Pooling's MAX and AVE have kernels.)
//   kMax     the first maximum in scan order; dx[winner] += dy
//   kAve     sum / size of the window, padding counted; dx[all] += dy / size
//   kDraw    Zeiler & Fergus 2013: one value, drawn in proportion to the values; dx[drawn] += dy
//   kExpect  the expectation of kDraw, sum x^2 / sum x; dx += dy (2 x sum x - sum x^2) / (sum x)^2
// kDraw and kExpect take no values below 0; where all are 0 the first is drawn, the expectation and its gradient are 0.
#pragma once
#include <cstdint>
#include <vector>

#include "base/random.h"
#include "kernels/context.h"

namespace crema::layers {

enum class PoolRule { kMax, kAve, kDraw, kExpect };

// [from, to) on one axis; may begin before 0 and end after the input; padding holds no value.
struct PoolSpan {
  int from, to;
};

struct PoolWindows {
  int images, channels, h, w;
  std::vector<PoolSpan> rows, columns;  // each row with each column is a window; all overlap the input
  int area() const { return static_cast<int>(rows.size() * columns.size()); }
};

// y of image n, channel c begins at n * imageStride + c * area(). winners (kMax, kDraw): images x channels x area()
// indices in the plane. Output i of a pass takes number firstDraw + i of `draws`. Images and channels are split over
// the threads.
template <class T>
void poolWindows(kernels::Context&, PoolRule, const PoolWindows&, const T* x, T* y, int64_t imageStride,
                 int32_t* winners, const RandomStream& draws, uint64_t firstDraw);
// Adds to dx.
template <class T>
void addPoolGradient(kernels::Context&, PoolRule, const PoolWindows&, const T* x, const T* dy, int64_t imageStride,
                     const int32_t* winners, T* dx);

}  // namespace crema::layers
