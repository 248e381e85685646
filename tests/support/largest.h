// The largest of some errors, where an error that is no number is larger than all others: std::max would forget it.
#pragma once
#include <algorithm>
#include <cmath>
#include <limits>

namespace crema::test {

inline double larger(double largest, double error) {
  return std::isnan(error) ? std::numeric_limits<double>::infinity() : std::max(largest, error);
}

}  // namespace crema::test
