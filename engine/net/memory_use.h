// Who overwrites whose memory in a net: the tops of some layers (Split, Reshape) are their bottom's memory, and layers
// in place write to all of it.
#pragma once
#include <vector>

#include "caffe.pb.h"
#include "layers/registry.h"

namespace crema::net {

// For each layer of a description that has its Splits. Where a layer in place overwrites what an earlier layer, or
// that layer itself, reads through another top of a Split, and needs again in its backward pass, that top gets a copy.
// The forward pass still computes Caffe's values: a layer that reads the overwritten memory later reads what was
// written.
std::vector<layers::MemoryUse> memoryUse(const caffe::NetParameter& withSplits, const layers::LayerRegistry& registry);

}  // namespace crema::net
