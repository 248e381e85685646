// A blob's values as doubles, in memory order.
#pragma once
#include <vector>

#include "tensor/blob.h"

namespace crema::test {

inline std::vector<double> valuesOf(const Blob& b, bool diff = false) {
  std::vector<double> v;
  for (int i = 0; i < b.count(); ++i) v.push_back(diff ? b.diffAt(i) : b.dataAt(i));
  return v;
}

}  // namespace crema::test
