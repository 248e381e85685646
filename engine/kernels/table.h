// The vector code of one instruction set, as a table: nothing outside vector/ sees how it is written. Float only;
// contracts: kernels.h, channels.h.
#pragma once
#include <type_traits>

#include "kernels/channels.h"
#include "kernels/kernels.h"

namespace crema::kernels {

struct Table {
  void (*convForward)(Context&, const ConvShape&, const float* x, const float* w, const float* bias, float* y);
  void (*convBackwardData)(Context&, const ConvShape&, const float* dy, const float* w, float* dx);
  void (*convBackwardWeights)(Context&, const ConvShape&, const float* x, const float* dy, float* dw, bool accumulate);
  void (*convBackwardBias)(Context&, const ConvShape&, const float* dy, float* dbias, bool accumulate);
  void (*ipForward)(Context&, const IpShape&, const float* x, const float* w, const float* bias, float* y);
  void (*ipBackwardData)(Context&, const IpShape&, const float* dy, const float* w, float* dx);
  void (*ipBackwardWeights)(Context&, const IpShape&, const float* x, const float* dy, float* dw, bool accumulate);
  void (*maxPoolForward)(Context&, const PoolShape&, const float* x, float* y, int32_t* mask);
  void (*maxPoolBackward)(Context&, const PoolShape&, const float* dy, const int32_t* mask, float* dx);
  void (*avePoolForward)(Context&, const PoolShape&, const float* x, float* y);
  void (*avePoolBackward)(Context&, const PoolShape&, const float* dy, float* dx);
  void (*lrnForward)(Context&, const LrnShape&, const float* x, float* scale, float* y);
  void (*lrnBackward)(Context&, const LrnShape&, const float* x, const float* y, const float* scale, const float* dy,
                      float* dx);
  void (*reluForward)(Context&, int64_t, float slope, const float* x, float* y);
  void (*reluBackward)(Context&, int64_t, float slope, const float* x, const float* dy, float* dx);
  void (*multiply)(Context&, int64_t, const float* a, const float* b, float* y);
  void (*add)(Context&, int64_t, const float* a, const float* b, float* y);
  void (*update)(Context&, int64_t, const Update&, const float* diff, float* history, float* history2, float* w);
  void (*channelSums)(Context&, const ChannelShape&, const float* x, double* sums);
  void (*channelDots)(Context&, const ChannelShape&, const float* a, const double* shiftA, const float* b,
                      const double* shiftB, double* sums);
  void (*channelAffine)(Context&, const ChannelShape&, const float* x, const double* shift, const double* factor,
                        const double* offset, float* y);
  void (*channelMix)(Context&, const ChannelShape&, const float* x, const float* y, const double* p, const double* q,
                     const double* shift, const double* r, float* z);
};

extern const Table kAvx2Table, kAvx512Table;
inline const Table& tableOf(const Context& c) { return c.isa() == Isa::kAvx512 ? kAvx512Table : kAvx2Table; }

// float goes to the table of the chosen instruction set, double to the reference loops.
template <class T>
inline constexpr bool kFloat = std::is_same_v<T, float>;

template <class T, class Fast, class Reference, class... A>
void dispatch(Context& c, Fast fast, Reference reference, const A&... a) {
  if constexpr (kFloat<T>)
    (tableOf(c).*fast)(c, a...);
  else
    reference(a...);
}

}  // namespace crema::kernels
