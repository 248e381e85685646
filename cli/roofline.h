// What a pass of a layer has to do, and what this machine can: the shortest time that the pass could take (the roofline
// model of Williams, Waterman and Patterson, 2009).
#pragma once
#include "net/net.h"

namespace crema::cli {

struct Work {
  double flops = 0;  // of the multiply-adds with weights, two each
  double bytes = 0;  // each value that is read or written once, 4 bytes: less where it is still in a cache
  Work& operator+=(const Work& w) { return flops += w.flops, bytes += w.bytes, *this; }
};

// Nothing for layers that only read data, and for those whose tops are their bottom's memory.
Work forwardWork(const net::Net& net, int layer);
Work backwardWork(const net::Net& net, int layer);  // for the gradients that backwardLayer() computes

struct Peaks {
  double flops = 0, bytes = 0;  // a second
};

// Measured with the context's threads, a quarter of a second: fused multiply-adds on what is in the first cache; sums of
// two arrays of 64 MiB, three streams. Best of five, as other work on the machine only slows it.
Peaks measuredPeaks(kernels::Context& kernels);

// The most memory that this process has had so far, in bytes, pages of files that it reads included; 0 where the system does
// not say (no /proc).
int64_t mostMemory();

// At these peaks; what bounds the work is the one that takes longer.
double leastSeconds(const Work& work, const Peaks& peaks);

}  // namespace crema::cli
