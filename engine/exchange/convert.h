// A net as an ONNX model for scoring: the layers that its outputs depend on are exported, which are the net's own
// outputs and the scores of its losses and accuracies; labels, losses and what only they read are left out. Blobs of
// data layers and of Input layers are the model's inputs.
#pragma once
#include <string>
#include <vector>

#include "net/net.h"
#include "onnx.pb.h"

namespace crema::exchange {

struct OnnxExport {
  ::onnx::ModelProto model;
  std::vector<std::string> notes;  // a sentence for each thing that the model leaves out
};

// The net must have its weights; its blobs may be reshaped by the call. invalid() names a layer without a conversion,
// or the size where protobuf's 2 GB are not enough.
//
// The first axis of the inputs is variable ("batch") unless the net fixes it: it is when the same net with one item
// more gives the same nodes and constants.
OnnxExport exportOnnx(net::Net& net);

}  // namespace crema::exchange
