// A net as an ONNX model. What scores with it needs is exported: the layers below its outputs, which are the net's own
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
  std::vector<std::string> notes;  // a sentence for whatever the model does not hold
};

// The net is built and has its weights; its blobs may have other shapes afterwards. invalid() names a layer without a
// conversion, or the size where protobuf's 2 GB are not enough.
//
// The first axis of the inputs is any number ("batch") where nothing fixes it: where the graph of the same net for one
// item more has the same nodes and constants.
OnnxExport exportOnnx(net::Net& net);

}  // namespace crema::exchange
