// Which layers of a net a model needs, and what its inputs and outputs are.
#pragma once
#include <string>
#include <vector>

#include "net/net.h"

namespace crema::exchange {

struct OnnxPort {
  std::string name;
  Blob* blob;
};

struct OnnxSelection {
  std::vector<bool> needed;  // by layer
  std::vector<OnnxPort> inputs, outputs;
  std::vector<std::string> leftOut;  // labels of layers
};

OnnxSelection selectForOnnx(const net::Net& net);  // invalid() where no output is left
bool isOnnxSource(const layers::Layer& layer);     // its tops are inputs of a model

}  // namespace crema::exchange
