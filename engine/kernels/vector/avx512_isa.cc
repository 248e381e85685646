// The vector kernels for AVX512. Headers of the standard library come first, outside the target region (see simd.h).
#include <immintrin.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include "kernels/scratch.h"
#include "kernels/table.h"

#define CREMA_VECTOR_BITS 512
#pragma GCC push_options
#pragma GCC target("avx512f,avx512vl,avx512dq,avx512bw,avx2,fma,prefer-vector-width=512")
// Each header uses those before it.
// clang-format off
#include "kernels/vector/simd.h"
#include "kernels/vector/tiles.h"
#include "kernels/vector/packing.h"
#include "kernels/vector/planes.h"
#include "kernels/vector/positions.h"
#include "kernels/vector/conv_back_taps.h"
#include "kernels/vector/conv.h"
#include "kernels/vector/conv_weights.h"
#include "kernels/vector/inner_product.h"
#include "kernels/vector/pool.h"
#include "kernels/vector/rows.h"
#include "kernels/vector/channels.h"
#include "kernels/vector/updates.h"
// clang-format on
#pragma GCC pop_options

namespace crema::kernels {
const Table kAvx512Table = k512::kTable;
}
