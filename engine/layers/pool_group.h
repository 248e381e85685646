// A max pooling and the ReLU in place on its bottom, going back: a window sends its gradient to its maximum, and the ReLU stops it
// where the maximum is not positive. The pooling knows that in its forward pass and gives such windows no place, so the ReLU has
// nothing to do and nobody reads the values in front of the pooling any more. net/training_plan.h finds such pairs.
//
// The bits are those of the two layers, but that a gradient that is stopped is 0 where the ReLU makes 0 * dy: of a negative one
// -0, which no sum that it is added to can tell (sums begin at 0), and NaN of one that is not finite, which ends here.
#pragma once
#include "layers/layer.h"

namespace crema::layers {

class PoolLeader {
 public:
  virtual ~PoolLeader() = default;
  virtual bool leadsPool() const = 0;  // whether it takes maxima
  // For all passes from now on, of windows whose maximum is not positive. Not where a second top says where maxima are.
  virtual void stopGradients() = 0;
};

}  // namespace crema::layers
