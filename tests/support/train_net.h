// Nets in phase TRAIN, of which all gradients are computed.
#pragma once
#include <memory>
#include <string>

#include "model/proto_io.h"
#include "net/net.h"

namespace crema::test {

// The input x and a convolution of it, as text.
inline const std::string
    kInput = "layer { name: 'x' type: 'Input' top: 'x' input_param { shape { dim: 2 dim: 4 dim: 5 dim: 5 } } }\n",
    kConv =
        "layer { name: 'c' type: 'Convolution' bottom: 'x' top: 'c' convolution_param { num_output: 4 "
        "kernel_size: 1 } }\n";

inline std::unique_ptr<net::Net> trainNetOf(const std::string& text, kernels::Context& kernels) {
  net::NetOptions o;
  o.kernels = &kernels;
  caffe::NetState state;
  state.set_phase(caffe::TRAIN);
  return std::make_unique<net::Net>(model::parseText<caffe::NetParameter>("force_backward: true " + text, "test"),
                                    state, o, "test");
}

}  // namespace crema::test
