// Shapes of blobs: up to 32 axes, each a non-negative int, product at most INT_MAX, as in Caffe.
#pragma once
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

namespace crema {

class Shape {
 public:
  Shape() = default;  // 0 axes: a scalar, count 1
  Shape(std::initializer_list<int> dims);
  explicit Shape(std::vector<int> dims);  // invalid() on negative dims, too many axes, count > INT_MAX

  int axes() const { return static_cast<int>(dims_.size()); }
  int count() const { return count_; }
  int count(int from, int to) const;  // product over axes [from, to)
  int count(int from) const { return count(from, axes()); }
  int operator[](int axis) const { return dims_[static_cast<size_t>(canonicalAxis(axis))]; }  // negative: from the end
  int canonicalAxis(int axis) const;  // invalid() when out of range
  // Caffe's num/channels/height/width: axis 0..3, 1 where missing; invalid() for more than 4 axes.
  int legacy(int axis) const;
  const std::vector<int>& dims() const { return dims_; }
  bool operator==(const Shape& other) const { return dims_ == other.dims_; }
  std::string text() const;   // "64 1 28 28 (50176)", as Caffe logs it
  std::string brief() const;  // "64x1x28x28"

 private:
  std::vector<int> dims_;
  int count_ = 1;
};

}  // namespace crema
