// The scoring plan against the net computed layer by layer: the same bits in every blob that is looked at, for nets drawn
// at random; what is merged and what must not be.
#include "net/scoring_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <random>

#include "model/proto_io.h"
#include "support/isas_here.h"

namespace crema::net {
namespace {

class Drawn {
 public:
  explicit Drawn(unsigned seed) : random_(seed) {
    const int side = std::array{5, 7, 14, 19}[of(4)];
    add(fmt::format("name: 'x' type: 'Input' top: 'x' input_param {{ shape {{ dim: {} dim: 4 dim: {} dim: {} }} }}",
                    std::array{1, 2, 7, 17}[of(4)], side, side));
    blobs_ = {"x"};
    const int layers = 4 + static_cast<int>(of(14));
    for (int i = 0; i < layers; ++i) addLayer("b" + std::to_string(i));
  }
  const std::string& text() const { return text_; }
  std::set<std::string> someBlobs() {
    std::set<std::string> some;
    for (const auto& b : blobs_)
      if (of(6) == 0) some.insert(b);
    return some;
  }

 private:
  size_t of(size_t n) { return random_() % n; }
  const std::string& any() { return blobs_[of(3) ? blobs_.size() - 1 : of(blobs_.size())]; }
  void add(const std::string& body) { text_ += "layer { " + body + " }\n"; }
  bool isFree(const std::string& blob) const { return blob != "x" && !read_.count(blob); }  // for a layer in place
  // A layer of one bottom; in place where it may be and the dice say so.
  void addSingle(const std::string& type, const std::string& name, const std::string& options, bool mayBeInPlace) {
    const std::string bottom = any();
    const std::string top = mayBeInPlace && isFree(bottom) && of(2) ? bottom : name;
    if (top == name) read_.insert(bottom);
    add(fmt::format("name: '{}' type: '{}' bottom: '{}' top: '{}' {}", name, type, bottom, top, options));
    if (top == name) blobs_.push_back(top);
  }
  void addLayer(const std::string& name) {
    static const std::string filler = "{ type: 'gaussian' std: 0.3 }";
    const size_t kind = of(10);
    if (kind < 4)
      addSingle("Convolution", name,
                fmt::format("convolution_param {{ num_output: 4 kernel_size: {} pad: {} group: {} bias_term: {} "
                            "weight_filler {} bias_filler {} }}",
                            kind % 2 ? 3 : 1, kind % 2, 1 + of(2), of(2) ? "true" : "false", filler, filler),
                false);
    else if (kind == 4)
      addSingle("BatchNorm", name, "", true);
    else if (kind == 5)
      addSingle("Scale", name,
                fmt::format("scale_param {{ filler {} bias_term: {} bias_filler {} }}", filler,
                            of(2) ? "true" : "false", filler),
                true);
    else if (kind == 6)
      addSingle("ReLU", name, of(2) ? "" : "relu_param { negative_slope: 0.1 }", true);
    else if (kind == 7)
      addSingle("Dropout", name, "", true);
    else if (kind == 8)
      addSingle("Pooling", name, "pooling_param { pool: AVE kernel_size: 3 pad: 1 }", false);
    else
      addSum(name);
  }
  void addSum(const std::string& name) {
    const std::string a = any(), b = any();
    const std::string top = a != b && isFree(a) && of(2) ? a : name;
    if (top == name) read_.insert(a);
    read_.insert(b);
    add(fmt::format("name: '{}' type: 'Eltwise' bottom: '{}' bottom: '{}' top: '{}' {}", name, a, b, top,
                    of(4) ? "" : "eltwise_param { coeff: 1 coeff: -1 }"));
    if (top == name) blobs_.push_back(top);
  }

  std::mt19937 random_;
  std::string text_;
  std::vector<std::string> blobs_;
  std::set<std::string> read_;
};

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
    Drawn drawn(seed);
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
  EXPECT_GT(merged, 400);
}

std::vector<int> computedBy(const std::string& layers, const std::set<std::string>& kept = {}) {
  kernels::Context kernels(kernels::bestIsa(), 1);
  const auto net = netOf(
      "layer { name: 'x' type: 'Input' top: 'x' input_param { shape { dim: 2 dim: 4 dim: 5 dim: 5 } } "
      "}\n" +
          layers,
      kernels);
  const ScoringPlan plan(*net, kept);
  std::vector<int> by;
  for (int i = 0; i < static_cast<int>(net->layers().size()); ++i) by.push_back(plan.computedBy(i));
  return by;
}

const std::string kConv =
    "layer { name: 'c' type: 'Convolution' bottom: 'x' top: 'c' convolution_param { num_output: 4 "
    "kernel_size: 1 } }\n";
std::string relu(const std::string& bottom, const std::string& top) {
  return fmt::format("layer {{ name: 'relu' type: 'ReLU' bottom: '{}' top: '{}' }}\n", bottom, top);
}

TEST(ScoringPlan, MergesWhatHasOneReaderAndIsNotAskedFor) {
  using By = std::vector<int>;
  EXPECT_EQ(computedBy(kConv + relu("c", "c")), (By{0, 1, 1}));
  EXPECT_EQ(computedBy(kConv + relu("c", "c"), {"c"}), (By{0, 1, 1}));  // in place: what is asked for is the ReLU's
  EXPECT_EQ(computedBy(kConv + relu("c", "r")), (By{0, 1, 1}));
  EXPECT_EQ(computedBy(kConv + relu("c", "r"), {"c"}), (By{0, 1, 2}));
  const std::string tanh = "layer { name: 't' type: 'TanH' bottom: 'c' top: 't' }\n";
  EXPECT_EQ(computedBy(kConv + relu("c", "r") + tanh), (By{0, 1, 2, 3, 4}));  // a Split behind c
  EXPECT_EQ(computedBy(kConv + tanh), (By{0, 1, 2}));                         // not a step
}

TEST(ScoringPlan, ASumIsAStepOfTheConvolutionThatComesLast) {
  const std::string sum = "layer { name: 's' type: 'Eltwise' bottom: 'c' bottom: 'd' top: 's' }\n";
  const std::string d =
      "layer { name: 'd' type: 'Convolution' bottom: 'x' top: 'd' convolution_param { num_output: 4 "
      "kernel_size: 1 } }\n";
  // The layers are x, its Split, c, d, s, relu. c must not take the sum: d is not there yet.
  EXPECT_EQ(computedBy(kConv + d + sum + relu("s", "s")), (std::vector<int>{0, 1, 2, 3, 3, 3}));
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
