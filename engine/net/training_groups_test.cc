// Which layers the plan for training computes together.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "net/training_plan.h"
#include "support/train_net.h"

namespace crema::net {
namespace {

// What `who` says of each layer of a net whose input is x.
template <class Who>
auto ofLayers(const std::string& layers, Who who, TrainingPlan::Options options = {}) {
  kernels::Context kernels(kernels::bestIsa(), 1);
  const auto net = test::trainNetOf(test::kInput + layers, kernels);
  const TrainingPlan plan(*net, options);
  std::vector<decltype(who(plan, 0))> all;
  for (int i = 0; i < static_cast<int>(net->layers().size()); ++i) all.push_back(who(plan, i));
  return all;
}

std::vector<int> groupsOf(const std::string& layers) {
  return ofLayers(layers, [](const TrainingPlan& plan, int i) { return plan.computedBy(i); });
}

std::string inPlace(const std::string& type, const std::string& options = "") {
  return fmt::format("layer {{ name: '{0}' type: '{0}' bottom: 'c' top: 'c' {1} }}\n", type, options);
}

TEST(TrainingPlan, AGroupIsABatchNormWithWhatIsInPlaceBehindIt) {
  using By = std::vector<int>;
  const std::string norm = test::kConv + inPlace("BatchNorm");
  EXPECT_EQ(groupsOf(norm + inPlace("Scale") + inPlace("ReLU")), (By{0, 1, 2, 2, 2}));
  EXPECT_EQ(groupsOf(norm + inPlace("ReLU") + inPlace("Scale")), (By{0, 1, 2, 2, 4}));  // a Scale comes before a ReLU
  EXPECT_EQ(groupsOf(norm + inPlace("Scale", "loss_weight: 1")), (By{0, 1, 2, 3}));
  EXPECT_EQ(groupsOf(norm + inPlace("Scale", "scale_param { num_axes: 3 }")), (By{0, 1, 2, 3}));
  EXPECT_EQ(
      groupsOf(test::kConv + inPlace("BatchNorm", "batch_norm_param { use_global_stats: true }") + inPlace("ReLU")),
      (By{0, 1, 2, 3}));
  EXPECT_EQ(groupsOf(norm + "layer { name: 'r' type: 'ReLU' bottom: 'c' top: 'r' }"), (By{0, 1, 2, 3}));
}

TEST(TrainingPlan, ASumIsAGroupWithTheReluAndTheSplitBehindIt) {
  using By = std::vector<int>;
  const auto conv = [](const std::string& name, const std::string& bottom) {
    return fmt::format(
        "layer {{ name: '{0}' type: 'Convolution' bottom: '{1}' top: '{0}' convolution_param {{ num_output: 4 "
        "kernel_size: 1 }} }}\n",
        name, bottom);
  };
  const auto sum = [](const std::string& options) {
    return "layer { name: 'c' type: 'Eltwise' bottom: 'a' bottom: 'b' top: 'c' " + options + " }\n";
  };
  const std::string two = conv("a", "x") + conv("b", "x"), readers = conv("d", "c") + conv("e", "c");
  // x, its Split, a, b, the sum, what follows
  EXPECT_EQ(groupsOf(two + sum("") + inPlace("ReLU") + readers), (By{0, 1, 2, 3, 4, 4, 4, 7, 8}));
  EXPECT_EQ(groupsOf(two + sum("") + readers), (By{0, 1, 2, 3, 4, 4, 6, 7}));
  EXPECT_EQ(groupsOf(two + sum("") + inPlace("ReLU") + conv("d", "c")), (By{0, 1, 2, 3, 4, 4, 6}));
  EXPECT_EQ(groupsOf(two + sum("") + inPlace("ReLU") + readers + conv("f", "c")), (By{0, 1, 2, 3, 4, 4, 6, 7, 8, 9}));
  const std::string split = "layer { name: 's' type: 'Split' bottom: 'c' top: 'p' top: 'q' ";
  EXPECT_EQ(groupsOf(two + sum("") + split + "}" + conv("d", "p")), (By{0, 1, 2, 3, 4, 4, 6}));
  EXPECT_EQ(groupsOf(two + sum("") + split + "loss_weight: 0 loss_weight: 1 }" + conv("d", "p")),
            (By{0, 1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(groupsOf(two + sum("eltwise_param { operation: MAX }") + inPlace("ReLU")), (By{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(groupsOf(two + sum("") + inPlace("ReLU", "relu_param { negative_slope: -1 }")), (By{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(groupsOf(two + sum("") + inPlace("ReLU") + inPlace("Power", "power_param { scale: -1 }")),
            (By{0, 1, 2, 3, 4, 5, 6}));
}

TEST(TrainingPlan, AConvolutionDoesTheForwardPassOfAReluBehindIt) {
  const auto forward = [](const std::string& behind) {
    return ofLayers(test::kConv + behind, [](const TrainingPlan& plan, int i) { return plan.forwardBy(i) == i; });
  };
  using All = std::vector<bool>;
  EXPECT_EQ(forward(inPlace("ReLU")), (All{true, true, false}));
  EXPECT_EQ(forward(inPlace("ReLU") + inPlace("Dropout")), (All{true, true, false, true}));
  EXPECT_EQ(forward(inPlace("ReLU") + inPlace("ReLU")), (All{true, true, false, true}));
  EXPECT_EQ(forward(inPlace("ReLU", "relu_param { negative_slope: -1 }")),
            (All{true, true, true}));  // it keeps its bottom
  EXPECT_EQ(forward(inPlace("ReLU") + inPlace("Power", "power_param { scale: -1 }")), (All{true, true, true, true}));
  EXPECT_EQ(forward(inPlace("ReLU", "loss_weight: 1")), (All{true, true, true}));
  EXPECT_EQ(forward("layer { name: 'r' type: 'ReLU' bottom: 'c' top: 'r' }"), (All{true, true, true}));
}

TEST(TrainingPlan, AMaxPoolingDoesTheBackwardPassOfAReluBelowIt) {
  const auto backward = [](const std::string& behind, TrainingPlan::Options options = {}) {
    return ofLayers(
        test::kConv + behind, [](const TrainingPlan& plan, int i) { return plan.backwardBy(i) == i; }, options);
  };
  using All = std::vector<bool>;
  const auto pool = [](const std::string& options, const std::string& more = "", const std::string& bottom = "c") {
    return fmt::format(
        "layer {{ name: 'p' type: 'Pooling' bottom: '{}' top: 'p' {} pooling_param {{ {} kernel_size: 2 }} }}\n",
        bottom, more, options);
  };
  EXPECT_EQ(backward(inPlace("ReLU") + pool("")), (All{true, true, false, true}));
  EXPECT_EQ(backward(inPlace("ReLU") + pool(""), {.maySeparate = true}), (All{true, true, true, true}));
  EXPECT_EQ(backward(inPlace("ReLU") + pool("pool: AVE")), (All{true, true, true, true}));
  EXPECT_EQ(backward(inPlace("ReLU") + pool("pool: STOCHASTIC")), (All{true, true, true, true}));
  EXPECT_EQ(backward(inPlace("ReLU") + pool("", "top: 'where'")), (All{true, true, true, true}));
  EXPECT_EQ(backward(inPlace("ReLU") + pool("", "loss_weight: 1")), (All{true, true, true, true}));
  EXPECT_EQ(backward(inPlace("ReLU", "relu_param { negative_slope: 0.1 }") + pool("")), (All{true, true, true, true}));
  EXPECT_EQ(backward(inPlace("ReLU") + inPlace("Dropout") + pool("")), (All{true, true, true, true, true}));
  EXPECT_EQ(backward(inPlace("ReLU") + pool("") + "layer { name: 'e' type: 'Power' bottom: 'c' top: 'e' }"),
            (All{true, true, true, true, true, true}));  // behind a Split
  EXPECT_EQ(backward(inPlace("ReLU") + inPlace("ReLU") + pool("")), (All{true, true, true, false, true}));
  EXPECT_EQ(backward(inPlace("BatchNorm") + inPlace("ReLU") + pool("")),
            (All{true, true, true, false, true}));  // in the group
  EXPECT_EQ(backward("layer { name: 's' type: 'Split' bottom: 'c' top: 'd' top: 'e' }\n"
                     "layer { name: 'r' type: 'ReLU' bottom: 'd' top: 'd' }\n" +
                     pool("", "", "d")),
            (All{true, true, true, false, true}));  // where a Split's copy is
  EXPECT_EQ(backward("debug_info: true\n" + inPlace("ReLU") + pool("")), (All{true, true, true, true}));
  EXPECT_EQ(backward("layer { name: 'r' type: 'ReLU' bottom: 'c' top: 'r' }" + pool("", "", "r")),
            (All{true, true, true, true}));
}

// log(log(x)) of what was delivered would be no number; it is log(x), and the overflow behind it is to be found.
TEST(TrainingPlan, WhatIsNotFiniteIsFoundBehindLayersInPlaceOnABatch) {
  kernels::Context kernels(kernels::bestIsa(), 1);
  const auto net = test::trainNetOf(
      "layer { name: 'x' type: 'Input' top: 'x' input_param { shape { dim: 2 dim: 3 } } }\n"
      "layer { name: 'log' type: 'Log' bottom: 'x' top: 'x' }\n"
      "layer { name: 'big' type: 'Power' bottom: 'x' top: 'big' power_param { scale: 1e38 } }\n"
      "layer { name: 'over' type: 'Power' bottom: 'big' top: 'over' power_param { scale: 1e38 } }\n",
      kernels);
  TrainingPlan plan(*net);
  std::fill_n(net->blob("x").mutableData<float>(), 6, 0.5f);
  plan.forward();
  EXPECT_EQ(plan.firstNotFinite(), "layer 'over' (Power), top 'over'");
  std::fill_n(net->blob("x").mutableData<float>(), 6, -1.f);
  plan.forward();
  EXPECT_EQ(plan.firstNotFinite(), "layer 'log' (Log), top 'x'");
}

}  // namespace
}  // namespace crema::net
