// Layers that train as one: a BatchNorm, and the Scale and ReLU in place on its top, forward and backward each in one
// kernel (kernels/norm.h), with the bits of the layers by themselves. net/training_plan.h finds such groups and runs them.
#pragma once
#include "kernels/norm.h"
#include "layers/layer.h"

namespace crema::layers {

class NormLeader {
 public:
  virtual ~NormLeader() = default;
  virtual bool leads(const Blobs& bottom) const = 0;  // whether it normalises by this batch, in floats
  // Where it keeps its bottom when it works in place: who writes the bottom there saves it a copy.
  virtual Blob& keptBottom() = 0;
  // Both after the group's reshapes. kept: the bottom's values are in keptBottom() already.
  virtual void forwardGroup(const Blobs& bottom, const Blobs& top, const kernels::NormSteps<float>& steps,
                            bool kept) = 0;
  virtual void backwardGroup(const Blobs& top, const Blobs& bottom, const kernels::NormSteps<float>& steps,
                             const kernels::NormSums& sums) = 0;
};

class NormFollower {
 public:
  virtual ~NormFollower() = default;
  // Adds what this layer does; false where it cannot stand behind what is there.
  virtual bool follow(const Blobs& bottom, kernels::NormSteps<float>* steps) const = 0;
  virtual void addSums(const kernels::NormSums&) {}  // to the gradients of its parameters
};

}  // namespace crema::layers
