// As many multiply-adds as asked for.
#pragma once
#include "kernels/kernels.h"

namespace crema::kernels::ref {

template <class T>
void fullSpeed(int64_t multiplyAdds) {
  volatile T factor = T(0.5);
  T chain[8] = {};
  for (int64_t i = 0; i < multiplyAdds; i += 8)
    for (T& c : chain) c = c * factor + T(1);
  volatile T end = 0;
  for (const T c : chain) end = end + c;
}

}  // namespace crema::kernels::ref
