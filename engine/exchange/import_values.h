// Constants rearranged: picked, transposed, broadcast.
#pragma once
#include "exchange/import_graph.h"

namespace crema::exchange {

// Refuses a large result that has more values than the node's inputs together.
void checkSize(const ImportNode& n, const Dims& dims);
Dims stepsOf(const Dims& dims);  // strides: the distance of adjacent values along each axis

// Value (i, j, ...) is the one at first + i steps[0] + j steps[1] + ... of `t`. REQUIRES: all of these are there.
::onnx::TensorProto picked(const ImportNode& n, const ::onnx::TensorProto& t, const Dims& dims, const Dims& steps,
                           int64_t first);
::onnx::TensorProto spread(const ImportNode& n, const ::onnx::TensorProto& t, const Dims& dims);  // numpy's broadcast

}  // namespace crema::exchange
