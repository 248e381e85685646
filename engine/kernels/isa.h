// The instruction sets for which there is vector code: each is a file vector/<name>_isa.cc and a word in this list.
#pragma once
#include "kernels/table.h"

// In order of preference: the last one that a CPU has is taken. Names of -isa, messages and tests come from this list.
// A set of another architecture belongs behind #if, here and around its file.
// clang-format off
#define CREMA_INSTRUCTION_SETS(X) \
  X(Avx2)                         \
  X(Avx512)
// clang-format on

namespace crema::kernels {

#define CREMA_DECLARE(NAME) extern const Isa k##NAME;
CREMA_INSTRUCTION_SETS(CREMA_DECLARE)
#undef CREMA_DECLARE

}  // namespace crema::kernels
