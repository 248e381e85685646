// Values that a model keeps in files of its own, beside it.
#pragma once
#include <string>

#include "onnx.pb.h"

namespace crema::exchange {

// They become part of the model. Of a file outside of `folder`, and of what is no file, nothing is read.
void readExternal(::onnx::GraphProto* graph, const std::string& folder);

}  // namespace crema::exchange
