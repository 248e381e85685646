// All vector kernels, and the table of them: written once over a small vocabulary, compiled once for each instruction
// set. A *_isa.cc file includes this inside its target region, with KNS as the namespace of its own, behind these
// words:
//
//   V, VL, Mask      a vector of floats, their number (a multiple of 4 that divides 16), which of them
//   kRows            rows of a tile: as many accumulators of two vectors as fit into the registers beside three others
//   zero set1 load store fma add sub mul div sqrt   each rounded once, as IEEE 754 says; fma is fused
//   stream           stores past the caches, aligned to a vector; drain() of eight_x86.h before others read it
//   set1Bits addBits subBits quarterBits (a / 4, unsigned)   of 32-bit integers that a vector holds
//   larger(a, b)     a > b ? a : b
//   greater select all lanes(from, to), load and store with a Mask: what it leaves out is neither read nor written
//   load(other, mask, p)   `other` where the mask leaves out;   loadHalves(a, b)   VL/2 floats from a, VL/2 from b
//   evens odds       of two vectors' numbers every second one, from the first or the second on
//   after(a, b)      a without its first number, then the first of b
//   before(a, b)     the last number of a, then b without its last
//   zipLow zipHigh   a[0] b[0] a[1] b[1] ... of the lower or the upper halves of two vectors
//   transpose(V*)    VL vectors as the rows of a matrix
//   D8               eight doubles: set8 load8 store8 (from and to float or double) + - * fma8, widen(V, D8*)
//   copy8 zero8 transpose8   eight floats at a time, eight_x86.h
//
// Each header uses those before it.
// clang-format off
#include "kernels/vector/sizes.h"
#include "kernels/vector/lines.h"
#include "kernels/vector/epilogue.h"
#include "kernels/vector/tiles.h"
#include "kernels/vector/packing.h"
#include "kernels/vector/planes.h"
#include "kernels/vector/panels.h"
#include "kernels/vector/packed_panels.h"
#include "kernels/vector/positions.h"
#include "kernels/vector/own_inputs.h"
#include "kernels/vector/turned.h"
#include "kernels/vector/conv_backward_taps.h"
#include "kernels/vector/winograd.h"
#include "kernels/vector/winograd_outputs.h"
#include "kernels/vector/conv_winograd.h"
#include "kernels/vector/conv_winograd_spread.h"
#include "kernels/vector/back_plan.h"
#include "kernels/vector/row_taps.h"
#include "kernels/vector/conv_depthwise_rows.h"
#include "kernels/vector/conv_depthwise_back_rows.h"
#include "kernels/vector/conv_depthwise.h"
#include "kernels/vector/conv_depthwise_weight_rows.h"
#include "kernels/vector/conv_depthwise_weights.h"
#include "kernels/vector/conv.h"
#include "kernels/vector/conv_winograd_weights.h"
#include "kernels/vector/weight_plan.h"
#include "kernels/vector/conv_weights.h"
#include "kernels/vector/inner_product.h"
#include "kernels/vector/full_speed.h"
#include "kernels/vector/pool_rows.h"
#include "kernels/vector/pool_squares.h"
#include "kernels/vector/pool.h"
#include "kernels/vector/rows.h"
#include "kernels/vector/lrn.h"
#include "kernels/vector/lrn_within.h"
#include "kernels/vector/channels.h"
#include "kernels/vector/norm.h"
#include "kernels/vector/updates.h"
// clang-format on

namespace crema::kernels::KNS {

#define CREMA_FILL(NAME) .NAME = KNS::NAME,
constexpr Table<float> kTable = {CREMA_KERNELS(CREMA_FILL)};
#undef CREMA_FILL

}  // namespace crema::kernels::KNS
