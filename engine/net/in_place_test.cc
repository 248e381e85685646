// Chains of layers in place: a layer's way back does not depend on what the layers behind it did to its top. The
// witness is the same chain with a blob for every layer, whose layers the conformance suite checks one by one.
#include <gtest/gtest.h>

#include <cmath>

#include "model/proto_io.h"
#include "net/net.h"

namespace crema {
namespace {

std::vector<double> gradients(const std::vector<std::string>& chain, bool inPlace, kernels::Context& kernels) {
  std::string text = R"(
    layer { name: 'in' type: 'Input' top: 'x' top: 'label' input_param { shape { dim: 6 dim: 5 } shape { dim: 6 } } }
    layer { name: 'ip' type: 'InnerProduct' bottom: 'x' top: 'y' inner_product_param { num_output: 7 weight_filler { type: 'xavier' } bias_filler { value: 1.5 } } }
  )";
  std::string blob = "y";
  for (size_t i = 0; i < chain.size(); ++i) {
    const std::string top = inPlace ? blob : "y" + std::to_string(i);
    text += fmt::format("layer {{ name: 'l{}' {} bottom: '{}' top: '{}' }}\n", i, chain[i], blob, top);
    blob = top;
  }
  text += "layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: '" + blob + "' bottom: 'label' top: 'loss' }";
  NetOptions o;
  o.kernels = &kernels, o.dtype = DType::kFloat64;
  caffe::NetState state;
  state.set_phase(caffe::TRAIN);
  Net net(parseText<caffe::NetParameter>(text, "net"), state, o, "net");
  for (int i = 0; i < 30; ++i) net.blob("x").mutableData<double>()[i] = std::sin(1.0 + i * i);
  for (int i = 0; i < 6; ++i) net.blob("label").mutableData<double>()[i] = i;
  net.clearParamDiffs();
  net.forward(), net.backward();
  std::vector<double> all;
  for (int i = 0; i < net.flatDiff().count(); ++i) all.push_back(net.flatDiff().diffAt(i));
  return all;
}

TEST(InPlace, ChainsHaveTheGradientsOfSeparateBlobs) {
  kernels::Context kernels(kernels::bestIsa(), 1);
  const std::string over = "type: 'Power' power_param { scale: -3 shift: 0.5 }", drop = "type: 'Dropout'";
  for (const char* type : {"AbsVal", "BNLL", "ELU", "Exp", "Power", "Sigmoid", "Swish", "TanH", "PReLU", "Bias",
                           "Scale", "BatchNorm", "MVN"}) {
    SCOPED_TRACE(type);
    const std::string layer = std::string("type: '") + type + "' mvn_param { across_channels: true }";
    for (const auto& chain : {std::vector{layer, over}, {layer, drop}, {over, layer, over, layer, drop}}) {
      const auto apart = gradients(chain, false, kernels);
      EXPECT_EQ(gradients(chain, true, kernels), apart);
      double size = 0;
      for (const double g : apart) size += std::fabs(g);
      EXPECT_GT(size, 1e-3);
    }
  }
}

}  // namespace
}  // namespace crema
