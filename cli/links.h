// Caffe's tools were programs of their own. Called through a link with such a name, this executable is that tool.
#pragma once
#include <string>
#include <vector>

namespace crema::cli {

// The command that the name of the executable (argv[0], any folder, with or without .bin) stands for; "" for none:
// `caffe`, whose commands are ours, and our own name.
std::string commandOfName(const std::string& executable);

}  // namespace crema::cli
