// Shape inference of nodes that move or combine values, for constants and blobs alike. Attributes and constant inputs
// are the node's own; badData() names it where they do not fit `in`.
#pragma once
#include "exchange/import_graph.h"

namespace crema::exchange {

Dims reshapedDims(const ImportNode& n, const Dims& in);
Dims squeezedDims(const ImportNode& n, const Dims& in);
Dims unsqueezedDims(const ImportNode& n, const Dims& in);
std::vector<size_t> transposedAxes(const ImportNode& n, size_t axes);  // new axis a is old axis result[a]
Dims joinedDims(const ImportNode& n, const std::vector<Dims>& parts, size_t axis);

struct ImportRange {
  int64_t from, step, count;
};
std::vector<ImportRange> slicedRanges(const ImportNode& n, const Dims& in);  // one for each axis

// numpy's broadcasting: aligned at the last axis, a dim of 1 takes the other's.
Dims broadcastDims(const ImportNode& n, const Dims& a, const Dims& b);
// `small` with axes of 1 in front; refuses what would make `in` larger.
Dims alignedDims(const ImportNode& n, Dims small, const Dims& in);

}  // namespace crema::exchange
