// Headers that vector code needs, included before a *_isa.cc file opens its target region: their inline functions must
// be baseline code, as the linker keeps one copy of each, which has to run on every CPU. For the same reason the region
// is opened by a pragma and not by -m flags.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <utility>
#include <variant>
#include <vector>

#include "kernels/isa.h"
#include "kernels/scratch.h"
#include "kernels/table.h"
#include "kernels/updates/list.h"

#define INL inline __attribute__((always_inline))
