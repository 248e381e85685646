// The oracle: plain loops, sums in double, never optimised, always built. It serves double nets, what the vector code
// declines, and every test. Contracts: kernels/kernels.h.
#pragma once
#include <cstdint>

#include "kernels/channels.h"
#include "kernels/kernels.h"

namespace crema::kernels::ref {

template <class T>
void convForward(const ConvShape&, const T* x, const T* w, const T* bias, T* y);
template <class T>
void convBackwardData(const ConvShape&, const T* dy, const T* w, T* dx);
template <class T>
void convBackwardWeights(const ConvShape&, const T* x, const T* dy, T* dw, bool accumulate);
template <class T>
void convBackwardBias(const ConvShape&, const T* dy, T* dbias, bool accumulate);
template <class T>
void ipForward(const IpShape&, const T* x, const T* w, const T* bias, T* y);
template <class T>
void ipBackwardData(const IpShape&, const T* dy, const T* w, T* dx);
template <class T>
void ipBackwardWeights(const IpShape&, const T* x, const T* dy, T* dw, bool accumulate);
template <class T>
void ipBackwardBias(const IpShape&, const T* dy, T* dbias, bool accumulate);
template <class T>
void maxPoolForward(const PoolShape&, const T* x, T* y, int32_t* mask);
template <class T>
void maxPoolBackward(const PoolShape&, const T* dy, const int32_t* mask, T* dx);
template <class T>
void avePoolForward(const PoolShape&, const T* x, T* y);
template <class T>
void avePoolBackward(const PoolShape&, const T* dy, T* dx);
template <class T>
void lrnForward(const LrnShape&, const T* x, T* scale, T* y);
template <class T>
void lrnBackward(const LrnShape&, const T* x, const T* y, const T* scale, const T* dy, T* dx);
template <class T>
void softmax(int outer, int axis, int inner, const T* x, T* y);
template <class T>
void update(int64_t count, const Update&, const T* diff, T* history, T* history2, T* w);
template <class T>
void channelSums(const ChannelShape&, const T* x, double* sums);
template <class T>
void channelDots(const ChannelShape&, const T* a, const double* shiftA, const T* b, const double* shiftB, double* sums);
template <class T>
void channelAffine(const ChannelShape&, const T* x, const double* shift, const double* factor, const double* offset,
                   T* y);
template <class T>
void channelMix(const ChannelShape&, const T* x, const T* y, const double* p, const double* q, const double* shift,
                const double* r, T* z);

}  // namespace crema::kernels::ref
