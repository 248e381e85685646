// Metadata in our exports beside the graph: the net's prototxt, and parameters that the graph holds only in derived
// form (BatchNorm's sums, for which it has rounded factors). An import uses it only where exporting it again gives the
// same graph, so that changes by other programs are not lost.
#pragma once
#include <optional>

#include "exchange/import.h"
#include "net/net.h"

namespace crema::exchange {

// `description`: the filtered one from which `net` was built.
void addDescription(::onnx::ModelProto& model, caffe::NetParameter description, const net::Net& net);
// *why: the reason why an existing description was not used.
[[nodiscard]] std::optional<OnnxImport> importDescribed(const ::onnx::ModelProto& model, const InputShapes& shapes,
                                                        std::string* why);

}  // namespace crema::exchange
