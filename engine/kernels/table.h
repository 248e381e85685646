// The list of kernels that exist once for each instruction set, and a table of them. Nothing outside vector/ knows how
// vector code is written.
#pragma once
#include "kernels/channels.h"
#include "kernels/kernels.h"
#include "kernels/norm.h"

// A kernel is one word here. It must have a declaration in kernels.h, channels.h or norm.h, whose type the table takes over;
// loops in ref/; vector code in vector/. A word that lacks one of them, or finds another type, does not compile.
// A list of names and not of signatures, so that contracts stand beside ordinary declarations, from which the compiler
// copies the types.
// clang-format off: one a line
#define CREMA_KERNELS(X) \
  X(convForward)         \
  X(convBackwardData)    \
  X(convBackwardWeights) \
  X(convBackwardBias)    \
  X(ipForward)           \
  X(ipBackwardData)      \
  X(ipBackwardWeights)   \
  X(ipBackwardBias)      \
  X(maxPoolForward)      \
  X(maxPoolBackward)     \
  X(avePoolForward)      \
  X(avePoolBackward)     \
  X(lrnForward)          \
  X(lrnBackward)         \
  X(lrnWithinForward)    \
  X(lrnWithinBackward)   \
  X(reluForward)         \
  X(reluBackward)        \
  X(multiply)            \
  X(add)                 \
  X(addRelu)             \
  X(addReluBackward)     \
  X(update)              \
  X(ipUpdate)            \
  X(fullSpeed)           \
  X(channelSums)         \
  X(channelDots)         \
  X(channelAffine)       \
  X(channelMix)          \
  X(normForward)         \
  X(normBackward)
// clang-format on

namespace crema::kernels {

template <class T>
struct Table {
#define CREMA_ENTRY(NAME) decltype(&kernels::NAME<T>) NAME;
  CREMA_KERNELS(CREMA_ENTRY)
#undef CREMA_ENTRY
};

// An instruction set; their list: isa.h.
struct Isa {
  const char* name;    // as -isa takes it
  bool (*runsHere)();  // whether this CPU has it
  Table<float> table;
};

// The loops of ref/: for double, and for the shapes that vector code declines.
extern const Table<float> kFloatReference;
extern const Table<double> kDoubleReference;

template <>
inline const Table<float>& tableOf<float>(const Context& c) {
  return c.isa().table;
}
template <>
inline const Table<double>& tableOf<double>(const Context&) {
  return kDoubleReference;
}

}  // namespace crema::kernels
