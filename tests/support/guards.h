// Guards on both sides of blobs: the 64 bytes that vector kernels may read (tensor/blob.cc) and nobody may write. They
// hold NaN in either type, so that a result computed from them shows as well.
#pragma once
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "tensor/blob.h"

namespace crema::conformance {

class Guards {
 public:
  void around(Blob& b) {
    withType(b.dtype(), [&]<class T>() {
      put(b, b.mutableData<T>(), b.dataMemory(), false);
      put(b, b.mutableDiff<T>(), b.diffMemory(), true);
    });
  }
  void check(const std::string& who) const {
    for (const Side& s : sides_) {
      for (size_t i = 0; i < kBytes; ++i)
        if (s.at[i] != kPattern) throw std::logic_error(who + " wrote byte " + std::to_string(i) + " " + s.where);
    }
  }

 private:
  static constexpr size_t kBytes = 64;
  static constexpr unsigned char kPattern = 0xff;
  struct Side {
    unsigned char* at;
    std::shared_ptr<const void> memory;
    std::string where;
  };
  template <class T>
  void put(const Blob& b, T* values, const std::shared_ptr<const void>& memory, bool diff) {
    const std::string what = std::string(diff ? "the diff" : "the data") + " of a blob " + b.shape().brief();
    auto* bytes = reinterpret_cast<unsigned char*>(values);
    const size_t size = static_cast<size_t>(b.count()) * sizeof(T);
    sides_.push_back({bytes - kBytes, memory, "before " + what});
    sides_.push_back({bytes + size, memory, "behind " + what});
    for (auto s = sides_.end() - 2; s != sides_.end(); ++s) std::memset(s->at, kPattern, kBytes);
  }
  std::vector<Side> sides_;
};

}  // namespace crema::conformance
