// What an export of ours carries beside its graph, as metadata: the net's prototxt, and the parameters that the graph
// holds in other numbers (BatchNorm's sums, of which it has rounded factors). An import believes it only where
// exporting it again gives the same graph: of a model that another program has changed the graph counts.
#pragma once
#include <optional>

#include "exchange/import.h"
#include "net/net.h"

namespace crema::exchange {

// `description`: as `net` was built of it, filtered.
void addDescription(::onnx::ModelProto& model, caffe::NetParameter description, const net::Net& net);
// *why: of a description that is there, why it is not taken.
std::optional<OnnxImport> importDescribed(const ::onnx::ModelProto& model, const InputShapes& shapes, std::string* why);

}  // namespace crema::exchange
