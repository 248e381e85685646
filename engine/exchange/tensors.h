// Values of ONNX tensors. badData() where there are more or fewer than its dims say, or in an external file.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "onnx.pb.h"

namespace crema::exchange {

using Dims = std::vector<int64_t>;

Dims dimsOf(const ::onnx::TensorProto& tensor);
int64_t countOf(const Dims& dims);  // badData() for negative dims and more than 2^31 - 1
std::string textOf(const Dims& dims);

std::string titleOf(const ::onnx::TensorProto& tensor);  // for errors
std::string bytesOf(const ::onnx::TensorProto& tensor);  // as raw_data has them
size_t widthOf(const ::onnx::TensorProto& tensor);       // bytes of a value; invalid() for types that are not read
std::vector<float> floatsOf(const ::onnx::TensorProto& tensor);  // of FLOAT, FLOAT16, DOUBLE and integers
std::vector<double> doublesOf(const ::onnx::TensorProto& tensor);
std::vector<int64_t> intsOf(const ::onnx::TensorProto& tensor);  // of integers and BOOL
std::string typeName(int type);                                  // "FLOAT16"
bool isInteger(int type);                                        // or BOOL
inline bool isInteger(const ::onnx::TensorProto& tensor) { return isInteger(tensor.data_type()); }

::onnx::TensorProto tensorOf(const Dims& dims, std::string bytes, int type);
::onnx::TensorProto tensorOf(const Dims& dims, const std::vector<float>& values);
// Rounded to FLOAT, FLOAT16 or DOUBLE; badData() for integers out of their type's range.
::onnx::TensorProto tensorOf(const Dims& dims, const std::vector<double>& values, int type);
::onnx::TensorProto tensorOf(const Dims& dims, const std::vector<int64_t>& values,
                             int type = ::onnx::TensorProto::INT64);

}  // namespace crema::exchange
