// What layers behind a convolution make of its outputs, number by number: steps that are done on a block of outputs while
// it is in a cache, with the arithmetic and the rounding that the layers have for themselves, so with their bits.
#pragma once
#include <vector>

namespace crema::kernels {

template <class T>
struct Step {
  enum Kind {
    kAffine,  // y <- (y - shift[c]) factor[c] + offset[c], as channelAffine(); null: shift 0, offset 0
    kRelu,    // y <- y > 0 ? y : slope y, as reluForward()
    kAdd,     // y <- y + other, which has y's layout
  };
  Kind kind;
  const T *shift = nullptr, *factor = nullptr, *offset = nullptr;  // a number for each channel c
  T slope = 0;
  const T* other = nullptr;
};

template <class T>
using Epilogue = std::vector<Step<T>>;  // in this order

}  // namespace crema::kernels
