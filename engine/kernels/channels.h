// Kernels on a blob seen as outer x channels x inner, with one number of each kind for each channel. Sums of floats: where
// inner > 1, number i of a row of `inner` numbers is added to chain i % 16, in float for up to 16 of them, 256 numbers of a
// row; then to a chain in double, and a binary tree adds these at the end, so that the bits follow from the shape alone.
// Where inner = 1, all in double. T is float (vector code) or double (reference loops). Sizes may be zero.
#pragma once
#include <cstdint>

#include "kernels/context.h"

namespace crema::kernels {

struct ChannelShape {
  int outer = 1, channels = 1, inner = 1;
};

// sums[c] = sum of x
template <class T>
void channelSums(Context& c, const ChannelShape& s, const T* x, double* sums) {
  tableOf<T>(c).channelSums(c, s, x, sums);
}

// sums[c] = sum of (a - shiftA[c]) (b - shiftB[c]); a null shift is 0; a and b may be the same. Shifts
// are rounded to T where inner > 1.
template <class T>
void channelDots(Context& c, const ChannelShape& s, const T* a, const double* shiftA, const T* b, const double* shiftB,
                 double* sums) {
  tableOf<T>(c).channelDots(c, s, a, shiftA, b, shiftB, sums);
}

// y = (x - shift[c]) factor[c] + offset[c] in T: the numbers are rounded to T, then the difference is, then a fused
// multiply-add; null: shift 0, offset 0. In place allowed. In double it would cost four times as much on vectors of floats,
// for bits below those that x has; so would channelMix().
template <class T>
void channelAffine(Context& c, const ChannelShape& s, const T* x, const double* shift, const double* factor,
                   const double* offset, T* y) {
  tableOf<T>(c).channelAffine(c, s, x, shift, factor, offset, y);
}

// z = p[c] (x - shiftX[c] + q[c] (y - shiftY[c])), q's product and its sum fused, in T as above: numbers that are near each
// other are subtracted first, which loses nothing. z may be x or y.
template <class T>
void channelMix(Context& c, const ChannelShape& s, const T* x, const double* shiftX, const T* y, const double* shiftY,
                const double* q, const double* p, T* z) {
  tableOf<T>(c).channelMix(c, s, x, shiftX, y, shiftY, q, p, z);
}

}  // namespace crema::kernels

#include "kernels/table.h"  // after the declarations, whose types it uses
