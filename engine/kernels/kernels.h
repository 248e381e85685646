// The numerical kernels, row-major NCHW, weights as Caffe stores them. T is float (vector code per instruction set) or
// double (the reference loops of ref/, for checking). Outputs are overwritten unless `accumulate` says that they are
// added to. No pointer may alias another unless stated. Shapes are not checked here (layers check them); sizes may
// be zero.
#pragma once
#include <cstdint>
#include <vector>

#include "kernels/context.h"
#include "kernels/epilogue.h"

namespace crema::kernels {

// ------------------------------------------------------------------------------------------------ convolution
// Cross-correlation with zero padding; output = (in + 2 pad - (dil (k-1) + 1)) / stride + 1.
// x [n][ic][h][w], w [oc][ic/groups][kh][kw], bias [oc] or null, y [n][oc][oh][ow]. `then` is done on y.
struct ConvShape {
  int n, ic, h, w, oc;
  int kh, kw, strideH = 1, strideW = 1, padH = 0, padW = 0, dilH = 1, dilW = 1, groups = 1;
  int oh() const { return (h + 2 * padH - (dilH * (kh - 1) + 1)) / strideH + 1; }
  int ow() const { return (w + 2 * padW - (dilW * (kw - 1) + 1)) / strideW + 1; }
};
template <class T>
void convForward(Context& c, const ConvShape& s, const T* x, const T* w, const T* bias, T* y,
                 const Epilogue<T>& then = {}) {
  tableOf<T>(c).convForward(c, s, x, w, bias, y, then);
}
template <class T>
void convBackwardData(Context& c, const ConvShape& s, const T* dy, const T* w, T* dx) {
  tableOf<T>(c).convBackwardData(c, s, dy, w, dx);
}
template <class T>
void convBackwardWeights(Context& c, const ConvShape& s, const T* x, const T* dy, T* dw, bool accumulate) {
  tableOf<T>(c).convBackwardWeights(c, s, x, dy, dw, accumulate);
}
template <class T>
void convBackwardBias(Context& c, const ConvShape& s, const T* dy, T* dbias, bool accumulate) {
  tableOf<T>(c).convBackwardBias(c, s, dy, dbias, accumulate);
}

// ------------------------------------------------------------------------------------------------ inner product
// y[n][o] = sum_i x[n][i] w[o][i] + bias[o]; with transposed the weights are stored [i][o]. bias may be null.
struct IpShape {
  int n, in, out;
  bool transposed = false;
};
template <class T>
void ipForward(Context& c, const IpShape& s, const T* x, const T* w, const T* bias, T* y) {
  tableOf<T>(c).ipForward(c, s, x, w, bias, y);
}
template <class T>
void ipBackwardData(Context& c, const IpShape& s, const T* dy, const T* w, T* dx) {
  tableOf<T>(c).ipBackwardData(c, s, dy, w, dx);
}
template <class T>
void ipBackwardWeights(Context& c, const IpShape& s, const T* x, const T* dy, T* dw, bool accumulate) {
  tableOf<T>(c).ipBackwardWeights(c, s, x, dy, dw, accumulate);
}
template <class T>
void ipBackwardBias(Context& c, const IpShape& s, const T* dy, T* dbias, bool accumulate) {
  tableOf<T>(c).ipBackwardBias(c, s, dy, dbias, accumulate);
}

// ------------------------------------------------------------------------------------------------ pooling
// oh, ow as the layer computed them (Caffe's ceil or floor rule). MAX: padding never wins, first maximum in scan order
// (strict >), mask[i] = index in the input plane (h*W + w) of the winner of output i; a window without input gives 0
// and mask -1; a null mask is not written. positive: windows whose maximum is not above 0 have mask -1 as well. AVE:
// divisor = window clipped to the padded image. x [n][c][h][w], y and mask [n][c][oh][ow].
struct PoolShape {
  int n, c, h, w, oh, ow;
  int kh, kw, strideH = 1, strideW = 1, padH = 0, padW = 0;
  bool positive = false;
};
template <class T>
void maxPoolForward(Context& c, const PoolShape& s, const T* x, T* y, int32_t* mask) {
  tableOf<T>(c).maxPoolForward(c, s, x, y, mask);
}
template <class T>
void maxPoolBackward(Context& c, const PoolShape& s, const T* dy, const int32_t* mask, T* dx) {
  tableOf<T>(c).maxPoolBackward(c, s, dy, mask, dx);
}
template <class T>
void avePoolForward(Context& c, const PoolShape& s, const T* x, T* y) {
  tableOf<T>(c).avePoolForward(c, s, x, y);
}
template <class T>
void avePoolBackward(Context& c, const PoolShape& s, const T* dy, T* dx) {
  tableOf<T>(c).avePoolBackward(c, s, dy, dx);
}

// ------------------------------------------------------------------------------------------------ LRN across channels
// scale = k + alpha/size * sum over the window of x^2; y = x * scale^-beta. size odd. x, y [n][c][hw]; the backward pass
// computes scale and y anew and allows no dx that is dy.
struct LrnShape {
  int n, c, hw, size;
  double alpha, beta, k;
};
template <class T>
void lrnForward(Context& c, const LrnShape& s, const T* x, T* y) {
  tableOf<T>(c).lrnForward(c, s, x, y);
}
template <class T>
void lrnBackward(Context& c, const LrnShape& s, const T* x, const T* dy, T* dx) {
  tableOf<T>(c).lrnBackward(c, s, x, dy, dx);
}

// ---------------------------------------------------------------------------------------- LRN within a channel's plane
// scale = 1 + alpha/size^2 * sum over the size x size window of x^2, zeros outside; y = x * scale^-beta. size odd.
// x, y, scale [n][c][h][w]; without a backward pass scale may be null. That needs no y and allows no dx that is dy.
struct LrnWithinShape {
  int n, c, h, w, size;
  double alpha, beta;
};
template <class T>
void lrnWithinForward(Context& c, const LrnWithinShape& s, const T* x, T* scale, T* y) {
  tableOf<T>(c).lrnWithinForward(c, s, x, scale, y);
}
template <class T>
void lrnWithinBackward(Context& c, const LrnWithinShape& s, const T* x, const T* scale, const T* dy, T* dx) {
  tableOf<T>(c).lrnWithinBackward(c, s, x, scale, dy, dx);
}

// ------------------------------------------------------------------------------------------------ element by element
// In place (y == x, dx == dy) is allowed here. ReLU's slope at x = 0 is negativeSlope; backward may be given y
// for x when negativeSlope >= 0 (the sign is the same).
template <class T>
void reluForward(Context& c, int64_t count, T negativeSlope, const T* x, T* y) {
  tableOf<T>(c).reluForward(c, count, negativeSlope, x, y);
}
template <class T>
void reluBackward(Context& c, int64_t count, T negativeSlope, const T* x, const T* dy, T* dx) {
  tableOf<T>(c).reluBackward(c, count, negativeSlope, x, dy, dx);
}
// y = a b.
template <class T>
void multiply(Context& c, int64_t count, const T* a, const T* b, T* y) {
  tableOf<T>(c).multiply(c, count, a, b, y);
}
// y = a + b; y may be a or b.
template <class T>
void add(Context& c, int64_t count, const T* a, const T* b, T* y) {
  tableOf<T>(c).add(c, count, a, b, y);
}

// The end of a residual block: y = a + b, then as reluForward(); a slope of 1 leaves the sum as it is.
template <class T>
void addRelu(Context& c, int64_t count, T slope, const T* a, const T* b, T* y) {
  tableOf<T>(c).addRelu(c, count, slope, a, b, y);
}
// Backward: reluBackward() of dy0 + dy1 (null: of dy0), y being its output, to dx0 and to dx1 (null: to dx0 alone). A slope
// below 0 would need the sum, whose sign is not y's.
template <class T>
void addReluBackward(Context& c, int64_t count, T slope, const T* y, const T* dy0, const T* dy1, T* dx0, T* dx1) {
  tableOf<T>(c).addReluBackward(c, count, slope, y, dy0, dy1, dx0, dx1);
}

// ------------------------------------------------------------------------------------------------ for all T alike
// Reductions in a fixed order that depends on count alone (fixed chunks, 8 chains a chunk, binary tree), accumulated
// in double.
template <class T>
double sumOfSquares(Context&, int64_t count, const T* x);
template <class T>
double dot(Context&, int64_t count, const T* a, const T* b);

// y = softmax of x over `axis` items at stride `inner`: x [outer][axis][inner]; the maximum is subtracted first. In
// place allowed.
template <class T>
void softmax(Context&, int outer, int axis, int inner, const T* x, T* y);

// ------------------------------------------------------------------------------------------------ update
// One step of a solver's update rule (updates/list.h) over weights and their histories: the k-th history of weight i is
// histories[k stride + i]. diff is left as it is.
struct Update;
template <class T>
void update(Context& c, int64_t count, const Update& u, const T* diff, T* histories, int64_t stride, T* w) {
  tableOf<T>(c).update(c, count, u, diff, histories, stride, w);
}
// How products of several ranks are added, in slots of which the first has the sum behind the last step.
struct SumStep {
  int slot;
  int rank;  // slot <- the product of this rank; -1: slot <- slot + (slot + 1)
};
// The factors of an inner product's gradients: those of rank r are x + r apart, [n][in], and dy + r apart, [n][out].
template <class T>
struct IpFactors {
  const T *x, *dy;
  int64_t apart = 0;
  std::vector<SumStep> sum = {{0, 0}};
};
// update() of an inner product's weights with the sum of the gradients that ipBackwardWeights() computes of each rank, which
// has no memory of its own: a tile of it is used while it is in the first cache. The same bits.
template <class T>
void ipUpdate(Context& c, const IpShape& s, const IpFactors<T>& f, const Update& u, T* histories, int64_t stride,
              T* w) {
  tableOf<T>(c).ipUpdate(c, s, f, u, histories, stride, w);
}

// ------------------------------------------------------------------------------------------------ measuring
// So many multiply-adds, rounded up to a few million, as fast as this machine's threads can: what there is to reach.
template <class T>
void fullSpeed(Context& c, int64_t multiplyAdds) {
  tableOf<T>(c).fullSpeed(c, multiplyAdds);
}

}  // namespace crema::kernels

#include "kernels/table.h"  // after the declarations, whose types it uses
