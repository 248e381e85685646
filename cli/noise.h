// Numbers for the inputs that a caller would fill, and what came out for them: `crema time` has neither pictures nor zeros, which
// processors may add faster.
#pragma once
#include <string>
#include <vector>

#include "net/net.h"

namespace crema::cli {

// Gives every top of an Input layer that has four axes, as pictures have, and not words or labels, numbers of mean 0 and variance 1, uniform, the same in every run: number i of a blob is
// sqrt(3) (h / 2^31 - 1), where h, in 32 bits, is i 0x9e3779b1; h ^ h >> 15; h 0x85ebca77; h ^ h >> 13.
void fillInputsWithNoise(const net::Net& net);

struct Output {
  std::string name;
  std::vector<int> shape;
  double rootMeanSquare;
};
std::vector<Output> outputsOf(const net::Net& net);

}  // namespace crema::cli
