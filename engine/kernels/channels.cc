#include "kernels/channels.h"

#include "kernels/ref/ref.h"
#include "kernels/table.h"

namespace crema::kernels {

template <class T>
void channelSums(Context& c, const ChannelShape& s, const T* x, double* sums) {
  dispatch<T>(c, &Table::channelSums, ref::channelSums<T>, s, x, sums);
}

template <class T>
void channelDots(Context& c, const ChannelShape& s, const T* a, const double* shiftA, const T* b, const double* shiftB,
                 double* sums) {
  dispatch<T>(c, &Table::channelDots, ref::channelDots<T>, s, a, shiftA, b, shiftB, sums);
}

template <class T>
void channelAffine(Context& c, const ChannelShape& s, const T* x, const double* shift, const double* factor,
                   const double* offset, T* y) {
  dispatch<T>(c, &Table::channelAffine, ref::channelAffine<T>, s, x, shift, factor, offset, y);
}

template <class T>
void channelMix(Context& c, const ChannelShape& s, const T* x, const T* y, const double* p, const double* q,
                const double* shift, const double* r, T* z) {
  dispatch<T>(c, &Table::channelMix, ref::channelMix<T>, s, x, y, p, q, shift, r, z);
}

#define INSTANCE(T)                                                                                                    \
  template void channelSums<T>(Context&, const ChannelShape&, const T*, double*);                                      \
  template void channelDots<T>(Context&, const ChannelShape&, const T*, const double*, const T*, const double*,        \
                               double*);                                                                               \
  template void channelAffine<T>(Context&, const ChannelShape&, const T*, const double*, const double*, const double*, \
                                 T*);                                                                                  \
  template void channelMix<T>(Context&, const ChannelShape&, const T*, const T*, const double*, const double*,         \
                              const double*, const double*, T*);
INSTANCE(float)
INSTANCE(double)
#undef INSTANCE

}  // namespace crema::kernels
