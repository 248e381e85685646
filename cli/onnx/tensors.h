// Values of ONNX tensors. badData() where there are more or fewer than its dims say, or where they are elsewhere.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "onnx.pb.h"

namespace crema::cli {

using Dims = std::vector<int64_t>;

Dims dimsOf(const ::onnx::TensorProto& tensor);
int64_t countOf(const Dims& dims);  // badData() for negative dims and more than 2^31 - 1
std::string textOf(const Dims& dims);

// Values that a model keeps in files of its own, beside it in `folder`, become part of it. A file outside is refused.
void readExternal(::onnx::GraphProto* graph, const std::string& folder);

std::vector<float> floatsOf(const ::onnx::TensorProto& tensor);  // of FLOAT, FLOAT16, DOUBLE and integers
std::vector<int64_t> intsOf(const ::onnx::TensorProto& tensor);  // of integers and BOOL
bool isInteger(const ::onnx::TensorProto& tensor);

::onnx::TensorProto tensorOf(const Dims& dims, const std::vector<int64_t>& values);
::onnx::TensorProto tensorOf(const Dims& dims, const std::vector<float>& values);

}  // namespace crema::cli
