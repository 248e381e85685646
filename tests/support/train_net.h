// A net in phase TRAIN, of which all gradients are computed.
#pragma once
#include <memory>
#include <string>

#include "model/proto_io.h"
#include "net/net.h"

namespace crema::test {

inline std::unique_ptr<net::Net> trainNetOf(const std::string& text, kernels::Context& kernels) {
  net::NetOptions o;
  o.kernels = &kernels;
  caffe::NetState state;
  state.set_phase(caffe::TRAIN);
  return std::make_unique<net::Net>(model::parseText<caffe::NetParameter>("force_backward: true " + text, "test"),
                                    state, o, "test");
}

}  // namespace crema::test
