// The scoring plan against the net computed layer by layer: the same bits in every blob that is looked at, for nets drawn
// at random; what is merged and what must not be.
#include "net/scoring_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <random>

#include "model/proto_io.h"
#include "support/drawn_net.h"
#include "support/isas_here.h"
#include "support/train_net.h"

namespace crema::net {
namespace {

void fillStatistics(layers::Layer& layer) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  const auto fill = [&](size_t param, const std::function<float()>& next) {
    std::generate_n(layer.params()[param]->mutableData<float>(), layer.params()[param]->count(), next);
  };
  fill(0, [&] { return normal(random); });
  fill(1, [&] { return 0.5F + std::abs(normal(random)); });
  fill(2, [] { return 1.5F; });
}

// Built twice from one seed, so that both have the same weights.
std::unique_ptr<Net> netOf(const std::string& text, kernels::Context& kernels) {
  NetOptions o;
  o.kernels = &kernels;
  o.needsBackward = false;
  caffe::NetState state;
  state.set_phase(caffe::TEST);
  auto net = std::make_unique<Net>(model::parseText<caffe::NetParameter>(text, "test"), state, o, "test");
  for (const auto& layer : net->layers())
    if (layer->type() == "BatchNorm") fillStatistics(*layer);
  return net;
}

void fillInput(Net& net, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  Blob& x = net.blob("x");
  for (int i = 0; i < x.count(); ++i) x.mutableData<float>()[i] = normal(random);
}

std::vector<float> values(Net& net, const std::string& blob) {
  const Blob& b = net.blob(blob);
  return {b.data<float>(), b.data<float>() + b.count()};
}

void expectSame(Net& plain, Net& planned, const std::set<std::string>& names) {
  for (const auto& name : names) {
    const auto want = values(plain, name), got = values(planned, name);
    ASSERT_EQ(want.size(), got.size()) << name;
    EXPECT_EQ(std::memcmp(want.data(), got.data(), want.size() * sizeof(float)), 0) << name;
  }
}

TEST(ScoringPlan, GivesTheBitsOfTheNetLayerByLayer) {
  int merged = 0;
  for (unsigned seed = 0; seed < 400; ++seed) {
    crema::test::DrawnNet drawn(seed);
    SCOPED_TRACE(drawn.text());
    kernels::Context kernels(*kernels::isasHere()[seed % kernels::isasHere().size()], 1 + static_cast<int>(seed % 3));
    const auto plain = netOf(drawn.text(), kernels), planned = netOf(drawn.text(), kernels);
    std::set<std::string> names = drawn.someBlobs();
    ScoringPlan plan(*planned, names);
    names.insert(plain->outputs().begin(), plain->outputs().end());
    for (int i = 0; i < static_cast<int>(planned->layers().size()); ++i) merged += plan.computedBy(i) != i;
    const int batch = plain->blob("x").shape()[0];
    for (int pass = 0; pass < 3; ++pass) {  // the last batch is short
      for (Net* net : {plain.get(), planned.get()}) {
        const Shape& s = net->blob("x").shape();
        net->blob("x").reshape({pass == 2 ? (batch + 1) / 2 : batch, s[1], s[2], s[3]});
        fillInput(*net, seed + static_cast<unsigned>(pass));
      }
      const double want = plain->forward(), got = plan.forward();
      EXPECT_EQ(want, got);
      ASSERT_NO_FATAL_FAILURE(expectSame(*plain, *planned, names));
    }
    if (HasFailure()) return;
  }
  EXPECT_GT(merged, 200);
}

std::vector<int> computedBy(const std::string& layers, const std::set<std::string>& kept = {}) {
  kernels::Context kernels(kernels::bestIsa(), 1);
  const auto net = netOf(test::kInput + layers, kernels);
  const ScoringPlan plan(*net, kept);
  std::vector<int> by;
  for (int i = 0; i < static_cast<int>(net->layers().size()); ++i) by.push_back(plan.computedBy(i));
  return by;
}

std::string relu(const std::string& bottom, const std::string& top) {
  return fmt::format("layer {{ name: 'relu' type: 'ReLU' bottom: '{}' top: '{}' }}\n", bottom, top);
}

TEST(ScoringPlan, MergesWhatHasOneReaderAndIsNotAskedFor) {
  using By = std::vector<int>;
  EXPECT_EQ(computedBy(test::kConv + relu("c", "c")), (By{0, 1, 1}));
  EXPECT_EQ(computedBy(test::kConv + relu("c", "c"), {"c"}),
            (By{0, 1, 1}));  // in place: what is asked for is the ReLU's
  EXPECT_EQ(computedBy(test::kConv + relu("c", "r")), (By{0, 1, 1}));
  EXPECT_EQ(computedBy(test::kConv + relu("c", "r"), {"c"}), (By{0, 1, 2}));
  const std::string tanh = "layer { name: 't' type: 'TanH' bottom: 'c' top: 't' }\n";
  EXPECT_EQ(computedBy(test::kConv + relu("c", "r") + tanh), (By{0, 1, 2, 3, 4}));  // a Split behind c
  EXPECT_EQ(computedBy(test::kConv + tanh), (By{0, 1, 2}));                         // not a step
}

TEST(ScoringPlan, ASumIsAStepOfTheConvolutionThatComesLast) {
  const std::string sum = "layer { name: 's' type: 'Eltwise' bottom: 'c' bottom: 'd' top: 's' }\n";
  const std::string d =
      "layer { name: 'd' type: 'Convolution' bottom: 'x' top: 'd' convolution_param { num_output: 4 "
      "kernel_size: 1 } }\n";
  // The layers are x, its Split, c, d, s, relu. c must not take the sum: d is not there yet.
  EXPECT_EQ(computedBy(test::kConv + d + sum + relu("s", "s")), (std::vector<int>{0, 1, 2, 3, 3, 3}));
}

// What is added to the convolution's outputs is changed, in place, through another name of its memory meanwhile.
TEST(ScoringPlan, AViewThatIsRectifiedBetweenConvolutionAndSum) {
  const std::string views[] = {
      "layer { name: 'split' type: 'Split' bottom: 'b' top: 'p' top: 'q' }\n" + test::kConv + relu("q", "q") +
          "layer { name: 's' type: 'Eltwise' bottom: 'c' bottom: 'p' top: 's' }",
      "layer { name: 'r' type: 'Reshape' bottom: 'b' top: 'q' reshape_param { shape { dim: 0 dim: -1 } } }\n" +
          test::kConv + relu("q", "q") + "layer { name: 's' type: 'Eltwise' bottom: 'c' bottom: 'b' top: 's' }"};
  for (const std::string& view : views) {
    const std::string text =
        "layer { name: 'x' type: 'Input' top: 'x' input_param { shape { dim: 2 dim: 4 dim: 5 dim: 5 } } }\n"
        "layer { name: 'b' type: 'TanH' bottom: 'x' top: 'b' }\n" +
        view;
    kernels::Context kernels(kernels::bestIsa(), 1);
    const auto plain = netOf(text, kernels), planned = netOf(text, kernels);
    ScoringPlan plan(*planned);
    fillInput(*plain, 3), fillInput(*planned, 3);
    plain->forward(), plan.forward();
    expectSame(*plain, *planned, {"s"});
  }
}

TEST(ScoringPlan, BlobsThatNobodyLooksAtShareMemory) {
  std::string layers;
  std::string below = "x";
  for (const char* name : {"a", "b", "c", "d"}) {
    layers += fmt::format("layer {{ name: '{0}' type: 'TanH' bottom: '{1}' top: '{0}' }}\n", name, below);
    below = name;
  }
  kernels::Context kernels(kernels::bestIsa(), 1);
  const auto net =
      netOf("layer { name: 'x' type: 'Input' top: 'x' input_param { shape { dim: 2 dim: 4 } } }\n" + layers, kernels);
  ScoringPlan plan(*net, {"b"});
  fillInput(*net, 1);
  plan.forward();
  const auto at = [&](const char* name) { return net->blob(name).data<float>(); };
  EXPECT_EQ(at("a"), at("c"));
  EXPECT_NE(at("b"), at("c"));
  EXPECT_NE(at("d"), at("c"));
  EXPECT_NE(at("x"), at("c"));
}

}  // namespace
}  // namespace crema::net
