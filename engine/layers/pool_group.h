// A max pooling and the ReLU in place on its bottom, going back: a window sends its gradient to its maximum, and the ReLU stops it
// where the maximum is not positive. The pooling knows that in its forward pass and gives such windows no place, so the ReLU has
// nothing to do and nobody reads the values in front of the pooling any more. net/training_plan.h finds such pairs.
//
// The bits are those of the two layers, but that a gradient that is stopped is 0 where the ReLU makes 0 * dy, which may be -0: no
// sum that it is added to can tell (sums begin at 0).
#pragma once
#include "layers/layer.h"

namespace crema::layers {

class PoolLeader {
 public:
  virtual ~PoolLeader() = default;
  virtual bool leadsPool(const Blobs& top) const = 0;  // whether it takes maxima, and no one asks where they were
  virtual void stopGradients() = 0;                    // from now on, of windows whose maximum is not positive
};

}  // namespace crema::layers
