// Constants of other shapes, made of a node's inputs.
#pragma once
#include "exchange/import_graph.h"

namespace crema::exchange {

// Refuses what is large and more than the node's inputs hold together.
void checkSize(const ImportNode& n, const Dims& dims);
Dims stepsOf(const Dims& dims);  // from one value of an axis to the next

// Value (i, j, ...) is the one at first + i steps[0] + j steps[1] + ... of `t`. REQUIRES: all of these are there.
::onnx::TensorProto picked(const ImportNode& n, const ::onnx::TensorProto& t, const Dims& dims, const Dims& steps,
                           int64_t first);
::onnx::TensorProto spread(const ImportNode& n, const ::onnx::TensorProto& t, const Dims& dims);  // numpy's broadcast

}  // namespace crema::exchange
