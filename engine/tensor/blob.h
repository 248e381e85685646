// A blob: a shape, data and diff (gradient), float or double chosen at run time. Memory comes lazily, zero-filled,
// 64-byte aligned, and never shrinks. Not thread-safe; copies are explicit (copyFrom), sharing is explicit (shareData,
// shareDiff).
#pragma once
#include <cstddef>
#include <memory>
#include <type_traits>

#include "base/error.h"
#include "tensor/shape.h"

namespace crema {

enum class DType { kFloat32, kFloat64 };
template <class T>
constexpr DType dtypeOf() {
  return std::is_same_v<T, double> ? DType::kFloat64 : DType::kFloat32;
}
inline size_t sizeOf(DType t) { return t == DType::kFloat64 ? 8 : 4; }

// Calls a template with the C++ type of a run-time type: withType(blob.dtype(), [&]<class T>() { ... }).
template <class Body>
decltype(auto) withType(DType t, Body&& body) {
  if (t == DType::kFloat64) return body.template operator()<double>();
  return body.template operator()<float>();
}

class Storage;  // reference-counted aligned memory

// Made by make_shared, it can be kept alive (shared_from_this) beyond its net.
class Blob : public std::enable_shared_from_this<Blob> {
 public:
  explicit Blob(DType dtype = DType::kFloat32) : dtype_(dtype) {}
  Blob(const Shape& shape, DType dtype) : dtype_(dtype) { reshape(shape); }

  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  int count() const { return shape_.count(); }
  void reshape(const Shape& shape);  // keeps the contents when the count does not grow

  template <class T>
  const T* data() const {
    return static_cast<const T*>(raw(data_, dtypeOf<T>()));
  }
  template <class T>
  T* mutableData() {
    return static_cast<T*>(raw(data_, dtypeOf<T>()));
  }
  template <class T>
  const T* diff() const {
    return static_cast<const T*>(raw(diff_, dtypeOf<T>()));
  }
  template <class T>
  T* mutableDiff() {
    return static_cast<T*>(raw(diff_, dtypeOf<T>()));
  }

  // From now on both blobs use the other's memory; counts must agree (internal error otherwise).
  void shareData(const Blob& other);
  void shareDiff(const Blob& other);
  // From now on this blob's memory is elements [offset, offset + count()) of `whole`'s: many parameters, one flat
  // buffer. What was here is copied there first. offset is a multiple of 16 elements so that rows stay aligned.
  void placeDataIn(const Blob& whole, int64_t offset);
  void placeDiffIn(const Blob& whole, int64_t offset);

  void joinDataWithDiff();  // from now on both are the memory of the diff

  // The owner of the present memory: while it is held, pointers above stay valid even if the blob goes or moves.
  std::shared_ptr<const void> dataMemory() const { return raw(data_, dtype_), data_; }
  std::shared_ptr<const void> diffMemory() const { return raw(diff_, dtype_), diff_; }
  bool sharesDiff(const Blob& other) const { return diff_ && diff_ == other.diff_; }  // asks for no memory

  void copyDataFrom(const Blob& other);  // shapes' counts and dtypes must agree
  void copyDiffFrom(const Blob& other);
  void fillData(double value);
  void fillDiff(double value);
  double dataAt(int index) const;  // any dtype, for tests, metrics and snapshots
  double diffAt(int index) const;

 private:
  void* raw(std::shared_ptr<Storage>& s, DType want) const;
  void place(std::shared_ptr<Storage>& mine, std::shared_ptr<Storage>& whole, const Blob& other, int64_t offset);
  DType dtype_;
  Shape shape_;
  // mutable: memory is allocated, as zeros, on first use, reading included.
  mutable std::shared_ptr<Storage> data_, diff_;
};

}  // namespace crema
