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
  caffe::NetParameter net;         // includes the values of parameters
  std::vector<std::string> notes;  // a sentence for each thing that differs
};
using InputShapes = std::map<std::string, std::vector<int64_t>>;  // by input: shapes that replace the model's

OnnxImport importOnnx(const ::onnx::ModelProto& model, const InputShapes& shapes);

}  // namespace crema::exchange
