// Layers that train as one at the end of a residual block: an Eltwise that adds two blobs, a ReLU in place on its top, and the
// Split of what its readers send back; forward in one pass over memory, and backward in one, with the bits of the layers by
// themselves. net/training_plan.h finds such groups and runs them.
#pragma once
#include <vector>

#include "layers/layer.h"

namespace crema::layers {

class SumLeader {
 public:
  virtual ~SumLeader() = default;
  virtual bool leadsSum(const Blobs& bottom, const Blobs& top) const = 0;  // whether it adds two floats, not in place
  // Both after the group's reshapes. slope: the ReLU's, 1 where there is none.
  virtual void forwardSum(const Blobs& bottom, const Blobs& top, float slope) = 0;
  // dy0: the gradient of the top or, where a Split is behind it, dy0 and dy1 of the Split's tops, else null; down: which
  // bottoms get theirs, the first in any case.
  virtual void backwardSum(const float* dy0, const float* dy1, const Blobs& top, const std::vector<bool>& down,
                           const Blobs& bottom, float slope) = 0;
};

struct SumSteps {
  bool rectified = false;
  float slope = 1;
};

class SumFollower {
 public:
  virtual ~SumFollower() = default;
  // Adds what this layer does; false where it cannot stand behind what is there.
  virtual bool followSum(const Blobs& bottom, const Blobs& top, SumSteps* steps) const = 0;
};

}  // namespace crema::layers
