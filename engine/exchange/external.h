// Tensors that a model stores in separate files beside it.
#pragma once
#include <string>

#include "onnx.pb.h"

namespace crema::exchange {

// Reads them into the model. Refuses paths outside of `folder` and anything but regular files.
void readExternal(::onnx::GraphProto* graph, const std::string& folder);

}  // namespace crema::exchange
