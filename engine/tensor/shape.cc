#include "tensor/shape.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <climits>

#include "base/error.h"

namespace crema {

Shape::Shape(std::initializer_list<int> dims) : Shape(std::vector<int>(dims)) {}

Shape::Shape(std::vector<int> dims) : dims_(std::move(dims)) {
  if (axes() > 32) invalid("a blob has at most 32 axes, this one {}", axes());
  int64_t count = 1;
  for (int d : dims_) {
    if (d < 0) invalid("negative dimension in blob shape {}", brief());
    count *= d;
    if (count > INT_MAX) invalid("blob size exceeds INT_MAX: shape {}; use a smaller batch or smaller inputs", brief());
  }
  count_ = static_cast<int>(count);
}

int Shape::count(int from, int to) const {
  if (from < 0 || to > axes() || from > to) internal("axes [{}, {}) of a blob with {} axes", from, to, axes());
  int64_t product = 1;
  for (int i = from; i < to; ++i) product *= dims_[static_cast<size_t>(i)];
  if (product > INT_MAX) invalid("axes [{}, {}) of shape {} exceed INT_MAX", from, to, brief());
  return static_cast<int>(product);
}

int Shape::canonicalAxis(int axis) const {
  if (axes() == 0) invalid("axis {} is out of range for a blob without axes, one number", axis);
  if (axis < -axes() || axis >= axes())
    invalid("axis {} is out of range for a blob with {} axes ({}); it has axes -{} to {}", axis, axes(), brief(),
            axes(), axes() - 1);
  return axis < 0 ? axis + axes() : axis;
}

int Shape::legacy(int axis) const {
  if (axes() > 4) invalid("num, channels, height and width need at most 4 axes; shape {}", brief());
  return axis < axes() ? dims_[static_cast<size_t>(axis)] : 1;
}

std::string Shape::text() const {
  return dims_.empty() ? fmt::format("({})", count_) : fmt::format("{} ({})", fmt::join(dims_, " "), count_);
}

std::string Shape::brief() const { return dims_.empty() ? "scalar" : fmt::format("{}", fmt::join(dims_, "x")); }

}  // namespace crema
