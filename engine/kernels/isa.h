// The instruction sets for which there is vector code: each is a file vector/<name>_isa.cc and a word in this list.
#pragma once
#include "kernels/context.h"

// From the plainest to the best: the last one that a CPU has is taken. Names of -isa, messages and tests follow.
// Another architecture's sets are a list of their own, as their files do not compile here.
// clang-format off
#define CREMA_INSTRUCTION_SETS(X) \
  X(Avx2)                         \
  X(Avx512)
// clang-format on

namespace crema::kernels {

template <class T>
struct Table;

struct Isa {
  const char* name;           // as -isa takes it
  bool (*runsHere)();         // whether this CPU has it
  const Table<float>* table;  // its kernels
};

#define CREMA_DECLARE(NAME) extern const Isa k##NAME;
CREMA_INSTRUCTION_SETS(CREMA_DECLARE)
#undef CREMA_DECLARE

}  // namespace crema::kernels
