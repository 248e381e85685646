// An ONNX model as a Caffe net with its weights: every node becomes the layers that compute the same. invalid() names a
// node that Caffe's layers cannot express, by name, type and attribute; badData() what is damaged.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "caffe.pb.h"
#include "onnx.pb.h"

namespace crema::exchange {

struct OnnxImport {
  caffe::NetParameter net;         // with the values of its parameters
  std::vector<std::string> notes;  // a sentence for whatever differs
};
using InputShapes = std::map<std::string, std::vector<int64_t>>;  // what replaces the model's own, by input

OnnxImport importOnnx(const ::onnx::ModelProto& model, const InputShapes& shapes);

}  // namespace crema::exchange
