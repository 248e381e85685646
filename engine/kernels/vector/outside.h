// What the vector code includes from outside: before a *_isa.cc file opens its target region, so that inline functions
// of these headers stay baseline code. The linker keeps one copy of each, and it must run on every CPU. That is also
// why the region is opened by a pragma and not by -m flags.
#pragma once
#include <algorithm>
#include <array>
#include <cstring>
#include <utility>
#include <variant>
#include <vector>

#include "kernels/isa.h"
#include "kernels/scratch.h"
#include "kernels/table.h"
#include "kernels/updates/list.h"

#define INL inline __attribute__((always_inline))
