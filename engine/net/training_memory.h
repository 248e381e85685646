// Which values and gradients of a net's blobs can share memory in a training step, and when each is needed. Moments of a net of n
// layers: i is the forward pass of layer i, 2n - 1 - i its backward pass. by[i]: i, or the layer that computes layer i.
//
// So gradients take the place of values of blobs further up, and the most that a step needs is about what backward passes read.
#pragma once
#include <set>
#include <vector>

#include "net/net.h"
#include "net/placement.h"

namespace crema::net {

// A value is needed from the layer that makes it to the last layer that has the blob as a bottom or top, and to the last
// backward pass that reads it (Layer::readsBackward()). Apart stay outputs and losses, which are read behind the step; tops
// of layers without bottoms, which may be filled once; and what Python layers have, which may keep anything.
// allGoBack: also those of which no loss needs it. deferred: layers whose first bottom is needed until the update. stopped: layers
// whose backward pass another does without these values.
std::vector<Need> valueNeeds(const Net& net, const std::vector<int>& by, bool allGoBack = false,
                             const std::set<int>& deferred = {}, const std::set<int>& stopped = {});

// A gradient is needed from the backward pass of the layers that read the blob to that of the layer that made it. Apart stay
// those with a loss weight, which stands in the gradient; those that nobody computes, which are zero; those that share memory
// already (Flatten); and those of Python layers. deferred: layers whose first top's is needed until the update.
std::vector<Need> gradientNeeds(const Net& net, const std::vector<int>& by, const std::set<int>& deferred = {});

}  // namespace crema::net
