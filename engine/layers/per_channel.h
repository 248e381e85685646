// What Scale and Bias share: coefficients whose shape is a range of bottom 0's axes, learnt (one bottom) or bottom 1.
#pragma once
#include <vector>

#include "layers/elementwise.h"

namespace crema::layers {

class PerChannelLayer : public SameShapeLayer {
 public:
  using SameShapeLayer::SameShapeLayer;
  Arity arity() const override { return {1, 2, 1, 1}; }

 protected:
  // The shape of learnt coefficients: num_axes axes from `axis` on; -1: all to the end; 0: one number.
  Shape learntShape(const Shape& x, int axis, int numAxes) const {
    if (numAxes < -1) invalid("num_axes must be -1 (to the last axis) or more, not {}", numAxes);
    if (numAxes == 0) return Shape{};
    const int from = x.canonicalAxis(axis);
    if (numAxes > x.axes() - from)
      invalid("{} blob's shape extends past bottom[0]'s shape: axis {} and num_axes {}, the bottom is {}", type(), axis,
              numAxes, x.brief());
    const int to = numAxes == -1 ? x.axes() : from + numAxes;
    return Shape(std::vector<int>(x.dims().begin() + from, x.dims().begin() + to));
  }

  // The axes of bottom 0 that coefficients of shape `numbers` cover, as outer x channels x inner.
  Channels place(const Shape& x, const Shape& numbers, int axis) const {
    const int from = numbers.axes() == 0 ? 0 : x.canonicalAxis(axis), to = from + numbers.axes();
    bool fits = to <= x.axes();
    for (int i = 0; fits && i < numbers.axes(); ++i) fits = x[from + i] == numbers[i];
    if (!fits)
      invalid("dimension mismatch: {}'s numbers are {}, bottom 0 is {} and must have these dimensions from axis {} on",
              type(), numbers.brief(), x.brief(), from);
    return Channels::of(x, from, to);
  }

  // Calls sum(sums), then to[d] = sums[d], or += for parameters.
  template <class T, class Sum>
  static void sumInto(const Channels& c, T* to, bool accumulate, const Sum& sum) {
    std::vector<double> sums(static_cast<size_t>(c.channels));
    sum(sums.data());
    for (size_t d = 0; d < sums.size(); ++d) to[d] = static_cast<T>((accumulate ? to[d] : 0.0) + sums[d]);
  }
};

}  // namespace crema::layers
