// Selects the layers of a net that an exported model needs, its inputs and its outputs.
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

OnnxSelection selectForOnnx(const net::Net& net);  // throws kInvalid where no output is left
bool isOnnxSource(const layers::Layer& layer);     // its tops are inputs of a model

}  // namespace crema::exchange
