// What a program that runs a net itself uses: ranges of layers, hooks, reshape, blobs and memory that outlive the net;
// and the message for a layer type that only such a program can add.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cmath>

#include "model/proto_io.h"
#include "net/net.h"
#include "support/message_of.h"

namespace crema::net {
namespace {

constexpr const char* kNet = R"(
layer { name: "in" type: "Input" top: "x" input_param { shape { dim: 2 dim: 3 } } }
layer { name: "ip" type: "InnerProduct" bottom: "x" top: "y"
        inner_product_param { num_output: 4 weight_filler { type: "gaussian" std: 1 } } }
layer { name: "tanh" type: "TanH" bottom: "y" top: "z" }
layer { name: "sum" type: "Reduction" bottom: "z" top: "s" loss_weight: 1 })";

std::unique_ptr<Net> make(kernels::Context& kernels, const std::string& text) {
  NetOptions o;
  o.kernels = &kernels;
  o.dtype = DType::kFloat64;
  caffe::NetState state;
  state.set_phase(caffe::TRAIN);
  return std::make_unique<Net>(model::parseText<caffe::NetParameter>(text, "net"), state, o, "");
}

void fill(Blob& blob, double from) {
  for (int i = 0; i < blob.count(); ++i) blob.mutableData<double>()[i] = std::sin(from + i);
}

TEST(Ranges, PartsAreTheWhole) {
  kernels::Context kernels(kernels::bestIsa(), 1);
  auto whole = make(kernels, kNet), parts = make(kernels, kNet);
  for (Net* net : {whole.get(), parts.get()}) fill(net->blob("x"), 1);
  EXPECT_EQ(whole->forward(), parts->forwardRange(0, 1) + parts->forwardRange(2, 3));
  whole->backward();
  parts->backwardRange(3, 2);
  EXPECT_EQ(parts->layers()[1]->params()[0]->diffAt(0), 0);  // not computed yet
  parts->backwardRange(1, 0);
  double sum = 0;
  for (int i = 0; i < 12; ++i) {
    const double mine = parts->layers()[1]->params()[0]->diffAt(i);
    EXPECT_EQ(mine, whole->layers()[1]->params()[0]->diffAt(i));
    sum += std::fabs(mine);
  }
  EXPECT_GT(sum, 0.1);
  EXPECT_EQ(parts->topNames(1), std::vector<std::string>{"y"});
  EXPECT_EQ(parts->bottomNames(2), std::vector<std::string>{"y"});
}

TEST(Ranges, HooksStandAroundEachLayerThatRuns) {
  kernels::Context kernels(kernels::bestIsa(), 1);
  auto net = make(kernels, kNet);
  std::string seen;
  net->hooks().beforeForward = [&](int i) { seen += fmt::format("f{} ", i); };
  net->hooks().afterForward = [&](int i) { seen += fmt::format("F{} ", i); };
  net->hooks().beforeBackward = [&](int i) { seen += fmt::format("b{} ", i); };
  net->hooks().afterBackward = [&](int i) { seen += fmt::format("B{} ", i); };
  net->forwardRange(1, 2);
  net->backward();  // an Input layer has no backward pass
  EXPECT_EQ(seen, "f1 F1 f2 F2 b3 B3 b2 B2 b1 B1 ");
  net->hooks() = {};
  seen.clear();
  net->forward();
  EXPECT_EQ(seen, "");
}

TEST(Ranges, AHookThatMakesValuesIsWhatTheLayerReads) {
  kernels::Context kernels(kernels::bestIsa(), 1);
  auto net = make(kernels, kNet);
  net->hooks().beforeForward = [&](int i) {
    if (i == 2) net->blob("y").fillData(0.5);
  };
  EXPECT_NEAR(net->forward(), 8 * std::tanh(0.5), 1e-12);
}

TEST(Ranges, ReshapeFollowsTheInputs) {
  kernels::Context kernels(kernels::bestIsa(), 1);
  auto net = make(kernels, kNet);
  net->blob("x").reshape({5, 3});
  EXPECT_EQ(net->blob("z").shape().brief(), "2x4");
  net->reshape();
  EXPECT_EQ(net->blob("z").shape().brief(), "5x4");
  net->blob("x").reshape({5, 7});
  const std::string why = test::messageOf([&] { net->reshape(); });
  EXPECT_NE(why.find("in reshape of layer 'ip' (InnerProduct)"), std::string::npos) << why;
}

TEST(Ranges, BlobsAndTheirMemoryOutliveTheNet) {
  kernels::Context kernels(kernels::bestIsa(), 1);
  auto net = make(kernels, kNet);
  const auto weights = net->layers()[1]->params()[0]->shared_from_this();
  const auto y = net->blob("y").shared_from_this();
  fill(*y, 3);
  const double* before = y->data<double>();
  const auto memory = y->dataMemory();
  const double first = weights->dataAt(0);
  net.reset();
  EXPECT_EQ(weights->dataAt(0), first);
  y->reshape({100, 100});
  fill(*y, 7);  // in other memory, as it grew
  EXPECT_NE(y->data<double>(), before);
  EXPECT_EQ(before[0], std::sin(3));
}

// A net as `crema summary` and `crema plan` build it reserves gigabytes and touches none of them.
TEST(Description, OfALargeNetTouchesNoMemory) {
  const auto peak = [] {
    rusage used{};
    getrusage(RUSAGE_SELF, &used);
    return used.ru_maxrss;  // KiB
  };
  kernels::Context kernels(kernels::bestIsa(), 1);
  NetOptions o;
  o.kernels = &kernels;
  o.fills = false;
  const auto description = model::parseText<caffe::NetParameter>(
      R"(layer { name: "d" type: "DummyData" top: "x" dummy_data_param { shape { dim: 2 dim: 1000000000 } } }
         layer { name: "t" type: "TanH" bottom: "x" top: "y" })",
      "net");
  const auto before = peak();
  Net net(description, {}, o, "");
  EXPECT_GE(net.memoryBytes(), 16000000000);
  EXPECT_LT(peak() - before, 200000);
}

TEST(PythonLayer, SaysWhoCanHaveIt) {
  kernels::Context kernels(kernels::bestIsa(), 1);
  const std::string why = test::messageOf([&] {
    make(kernels, R"(layer { name: "p" type: "Python" top: "x" python_param { module: "mine" layer: "Loss" } })");
  });
  EXPECT_NE(why.find("Python layers need Python: class 'Loss' of module 'mine' can be used by a program that says "
                     "`import caffe`, not here"),
            std::string::npos)
      << why;
  EXPECT_NE(why.find("in layer 'p'"), std::string::npos) << why;
}

}  // namespace
}  // namespace crema::net
