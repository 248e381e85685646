#include "exchange/import_values.h"

#include <algorithm>

namespace crema::exchange {
namespace {

constexpr int64_t kMostValues = 1 << 24;

}  // namespace

void checkSize(const ImportNode& n, const Dims& dims) {
  int64_t given = 0;
  for (int i = 0; i < n.inputs(); ++i)
    if (n.constant(i)) given += countOf(dimsOf(n.tensor(i)));
  if (countOf(dims) > std::max(kMostValues, given))
    n.refuse("it makes a constant of {}, and {} values are the most; simplify the model first", textOf(dims),
             kMostValues);
}

Dims stepsOf(const Dims& dims) {
  Dims steps(dims.size(), 1);
  for (size_t a = dims.size(); a-- > 1;) steps[a - 1] = steps[a] * dims[a];
  return steps;
}

::onnx::TensorProto picked(const ImportNode& n, const ::onnx::TensorProto& t, const Dims& dims, const Dims& steps,
                           int64_t first) {
  checkSize(n, dims);
  const auto count = static_cast<size_t>(countOf(dims));
  const size_t width = widthOf(t);
  const std::string old = bytesOf(t);
  std::string made;
  made.reserve(count * width);
  Dims at(dims.size(), 0);
  for (size_t i = 0; i < count; ++i) {
    made.append(old, static_cast<size_t>(first) * width, width);
    for (size_t a = at.size(); a-- > 0;) {
      first += steps[a];
      if (++at[a] < dims[a]) break;
      first -= at[a] * steps[a], at[a] = 0;
    }
  }
  return tensorOf(dims, std::move(made), t.data_type());
}

::onnx::TensorProto spread(const ImportNode& n, const ::onnx::TensorProto& t, const Dims& dims) {
  const Dims have = dimsOf(t);
  Dims steps = stepsOf(have);
  for (size_t a = 0; a < have.size(); ++a)
    if (have[a] == 1) steps[a] = 0;
  steps.insert(steps.begin(), dims.size() - have.size(), 0);
  return picked(n, t, dims, steps, 0);
}

}  // namespace crema::exchange
