// ONNX models of many operators, as other programs write them; some have values in a file beside them.
#pragma once
#include <fstream>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "exchange/external.h"
#include "exchange/import.h"
#include "model/proto_io.h"

namespace crema::fuzz {

constexpr char kOnnxHead[] = R"(ir_version: 8 opset_import { version: 13 } graph { name: 'g' output { name: 'y' }
    input { name: 'x' type { tensor_type { elem_type: 1
      shape { dim { dim_param: 'batch' } dim { dim_value: 2 } dim { dim_value: 6 } dim { dim_value: 6 } } } } }
    initializer { name: 'w' data_type: 1 dims: [2, 1, 2, 2] float_data: [1, 2, 3, 4, 5, 6, 7, 8] }
    initializer { name: 'v' data_type: 1 dims: 2 float_data: [0.5, 2] }
    initializer { name: 'two' data_type: 1 dims: 1 float_data: 2 }
    initializer { name: 'i' data_type: 7 dims: 2 int64_data: [0, -1] }
    initializer { name: 'zero' data_type: 7 dims: 1 int64_data: 0 } initializer { name: 'one' data_type: 7 dims: 1 int64_data: 1 }
    initializer { name: 'end' data_type: 7 dims: 1 int64_data: -9 } initializer { name: 'back' data_type: 7 dims: 1 int64_data: -1 }
    initializer { name: 'a' data_type: 1 dims: [2, 1, 1] float_data: [3, 4] }
    initializer { name: 'k' data_type: 6 dims: [1, 3] int32_data: [7, -1, 2] }
    initializer { name: 'scales' data_type: 1 dims: 4 float_data: [1, 1, 2, 3] }
    initializer { name: 'far' data_type: 1 dims: 2 data_location: 1 external_data { key: 'location' value: 'values' }
      external_data { key: 'offset' value: '8' } external_data { key: 'length' value: '8' } }
    initializer { name: 'whole' data_type: 7 dims: 8 data_location: 1
      external_data { key: 'location' value: 'values' } }
    initializer { name: 'm' data_type: 1 dims: [8, 2] float_data: [1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4, 5, 6, 7, 8] } )";

constexpr const char* kOnnxNodes[] = {
    R"(node { op_type: 'Conv' input: ['x', 'w', 'v'] output: 'c' attribute { name: 'group' i: 2 }
         attribute { name: 'pads' ints: [1, 0, 0, 1] } attribute { name: 'strides' ints: [2, 2] } }
       node { op_type: 'BatchNormalization' input: ['c', 'v', 'v', 'v', 'v'] output: 'b' }
       node { op_type: 'Clip' input: ['b', '', 'two'] output: 'r' }
       node { op_type: 'AveragePool' input: 'r' output: 'p' attribute { name: 'kernel_shape' ints: [2, 2] }
         attribute { name: 'pads' ints: [1, 1, 1, 1] } }
       node { op_type: 'Mul' input: ['p', 'two'] output: 'q' } node { op_type: 'Softmax' input: 'q' output: 'y' } })",
    R"(node { op_type: 'MaxPool' input: 'x' output: 'p' attribute { name: 'kernel_shape' ints: [3, 3] }
         attribute { name: 'strides' ints: [3, 3] } }
       node { op_type: 'Shape' input: 'p' output: 's' } node { op_type: 'Gather' input: ['s', 'zero'] output: 'n' }
       node { op_type: 'Concat' input: ['n', 'back'] output: 'to' attribute { name: 'axis' i: 0 } }
       node { op_type: 'Reshape' input: ['p', 'to'] output: 'f' } node { op_type: 'Gemm' input: ['f', 'm'] output: 'y' } })",
    R"(node { op_type: 'Split' input: 'x' output: ['a1', 'b'] attribute { name: 'axis' i: 1 } }
       node { op_type: 'Add' input: ['a1', 'b'] output: 'c' }
       node { op_type: 'ReduceMean' input: 'c' output: 'd' attribute { name: 'axes' ints: [2, 3] } }
       node { op_type: 'Mul' input: ['c', 'd'] output: 'e' } node { op_type: 'Slice' input: ['e', 'one', 'back', 'back'] output: 'h' }
       node { op_type: 'ReduceMean' input: 'h' output: 'l' attribute { name: 'axes' ints: [2, 3] } }
       node { op_type: 'Transpose' input: 'l' output: 't' attribute { name: 'perm' ints: [0, 2, 3, 1] } }
       node { op_type: 'Concat' input: ['d', 't'] output: 'y' attribute { name: 'axis' i: 1 } } })",
    R"(node { op_type: 'Mul' input: ['a', 'far'] output: 'b' } node { op_type: 'Div' input: ['b', 'v'] output: 'c' }
       node { op_type: 'Transpose' input: 'c' output: 'd' attribute { name: 'perm' ints: [2, 0, 1] } }
       node { op_type: 'Slice' input: ['d', 'zero', 'one', 'zero'] output: 'e' }
       node { op_type: 'Squeeze' input: ['e', 'zero'] output: 'f' } node { op_type: 'Reshape' input: ['f', 'back'] output: 'h' }
       node { op_type: 'Concat' input: ['h', 'h', 'v'] output: 'j' attribute { name: 'axis' i: 0 } }
       node { op_type: 'Cast' input: 'j' output: 'l' attribute { name: 'to' i: 11 } }
       node { op_type: 'Cast' input: 'l' output: 'o' attribute { name: 'to' i: 10 } }
       node { op_type: 'Cast' input: 'o' output: 'q' attribute { name: 'to' i: 1 } }
       node { op_type: 'Add' input: ['x', 'q'] output: 'y' } })",
    R"(node { op_type: 'Add' input: ['whole', 'one'] output: 'a1' } node { op_type: 'Div' input: ['a1', 'back'] output: 'a2' }
       node { op_type: 'Sub' input: ['a2', 'whole'] output: 'a3' } node { op_type: 'Mul' input: ['a3', 'end'] output: 'a4' }
       node { op_type: 'Unsqueeze' input: ['a4', 'zero'] output: 'a5' }
       node { op_type: 'Gather' input: ['a5', 'one'] output: 'a6' attribute { name: 'axis' i: 1 } }
       node { op_type: 'Cast' input: 'k' output: 'k1' attribute { name: 'to' i: 7 } }
       node { op_type: 'Slice' input: ['k1', 'back', 'end', 'one', 'back'] output: 'k2' }
       node { op_type: 'Expand' input: ['k2', 'one'] output: 'k3' }
       node { op_type: 'ConstantOfShape' input: 'one' output: 'k4' }
       node { op_type: 'Add' input: ['a6', 'k3'] output: 'a7' } node { op_type: 'Cast' input: 'a7' output: 'a8' attribute { name: 'to' i: 1 } }
       node { op_type: 'Add' input: ['a8', 'k4'] output: 'a9' }
       node { op_type: 'Slice' input: ['x', 'zero', 'end2', 'back'] output: 'x1' } node { op_type: 'Mul' input: ['x1', 'a9'] output: 'y' }
       initializer { name: 'end2' data_type: 7 dims: 1 int64_data: 3 } })",
    R"(node { op_type: 'Resize' input: ['x', '', 'scales'] output: 'r' attribute { name: 'nearest_mode' s: 'floor' }
         attribute { name: 'coordinate_transformation_mode' s: 'asymmetric' } }
       node { op_type: 'PRelu' input: ['r', 'a'] output: 'p' } node { op_type: 'Cast' input: 'p' output: 'y' attribute { name: 'to' i: 11 } } })",
    R"(node { op_type: 'Relu' input: 'x' output: 'y' } }
       metadata_props { key: 'crema.weights' value: 'AAAA' }
       metadata_props { key: 'crema.net' value: "layer { name: 'x' type: 'Input' top: 'x' input_param { shape { dim: [3, 2, 6, 6] } } }"
         "layer { name: 'y' type: 'ReLU' bottom: 'x' top: 'y' } layer { name: 'z' type: 'BatchNorm' bottom: 'x' top: 'z' }" })"};

inline void readOnnx(const std::string& bytes, const std::string& folder) {
  ::onnx::ModelProto model;
  model::parseBinaryInto(bytes, "fuzzed", &model);
  exchange::readExternal(model.mutable_graph(), folder);
  exchange::importOnnx(model, {});
}

// As text, in which numbers and operators change places and the message stays one.
inline std::vector<std::string> onnxTexts() {
  std::vector<std::string> all;
  for (const std::string nodes : kOnnxNodes) all.push_back(kOnnxHead + nodes);
  return all;
}
inline std::vector<std::string> onnxWords() {
  std::set<std::string> all;
  std::string word;
  for (const std::string& text : onnxTexts())
    for (const char c : text) {
      if (std::isalnum(static_cast<unsigned char>(c)) || c == '_')
        word += c;
      else
        all.insert(std::exchange(word, ""));
    }
  all.erase("");
  return {all.begin(), all.end()};
}
inline void readOnnxText(const std::string& text, const std::string& folder) {
  readOnnx(model::parseText<::onnx::ModelProto>(text, "fuzzed").SerializeAsString(), folder);
}

// Each of them valid, as a seed that is refused reaches little code.
inline std::vector<std::string> onnxModels(const std::string& folder) {
  std::vector<int64_t> values(8);
  std::iota(values.begin(), values.end(), 1);
  std::ofstream(folder + "/values", std::ios::binary).write(reinterpret_cast<const char*>(values.data()), 64);
  std::vector<std::string> all;
  for (const std::string& text : onnxTexts()) {
    all.push_back(model::parseText<::onnx::ModelProto>(text, "seed").SerializeAsString());
    readOnnx(all.back(), folder);
  }
  return all;
}

}  // namespace crema::fuzz
