// -mean of `crema classify`: one number per channel.
#pragma once
#include <string>
#include <vector>

namespace crema::cli {

// A .binaryproto or a .npy (float32 or float64, channels first), whose mean over each channel is taken as BVLC's C++
// example does, or "104,117,123" itself: one number, or one per channel, in the net's order (B, G, R). "": zeros.
std::vector<float> channelMeans(const std::string& mean, int channels);

}  // namespace crema::cli
