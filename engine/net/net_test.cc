// Nets: Caffe's results for single layers, wiring, sharing, which layers need backward, and messages for wrong wiring.
#include "net/net.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <functional>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "model/proto_io.h"
#include "model/upgrade.h"
#include "support/largest.h"
#include "support/npy.h"
#include "support/shared_data.h"
#include "support/values_of.h"

namespace crema::net {
namespace {

class NetTest : public testing::Test {
 protected:
  std::unique_ptr<Net> make(const caffe::NetParameter& p, caffe::Phase phase = caffe::TEST,
                            DType dtype = DType::kFloat32) {
    NetOptions o;
    o.kernels = &kernels_;
    o.dtype = dtype;
    caffe::NetState state;
    state.set_phase(phase);
    return std::make_unique<Net>(p, state, o, "test.prototxt");
  }
  std::unique_ptr<Net> make(const std::string& text, caffe::Phase phase = caffe::TEST, DType dtype = DType::kFloat32) {
    return make(model::parseText<caffe::NetParameter>(text, "net"), phase, dtype);
  }
  std::string refusal(const std::string& text) {
    try {
      make(text, caffe::TRAIN);
    } catch (const Error& e) {
      return e.what();
    }
    return "no error";
  }
  kernels::Context kernels_{kernels::bestIsa(), 2};
};

// Outputs that Caffe wrote: tests/goldens/recorded/layers, and published ones where the machine has them. Both float32
// results have rounding errors: ours must be as close to the net in double as Caffe's, and both close to each other.
TEST_F(NetTest, LayersGiveWhatCaffeGave) {
  const struct {
    const char* name;
    double bound;
  } goldens[] = {
      {"convolution", 3e-6}, {"inner_product", 6e-6}, {"lrn_channels", 3e-7}, {"pooling_max", 0}, {"softmax", 1e-7}};
  std::vector<std::string> folders = {CREMA_SOURCE_DIR "/tests/goldens/recorded/layers"};
  if (const auto others = test::sharedData("layers_golden")) folders.push_back(*others);
  for (const auto& folder : folders)
    for (const auto& g : goldens) {
      SCOPED_TRACE(folder + ", " + g.name);
      const auto x = test::readNpy(folder + "/blob.npy").values;
      const std::string stem = folder + "/layer_" + g.name;
      const auto run = [&](DType dtype) {
        auto net = make(model::readNet(stem + ".prototxt"), caffe::TEST, dtype);
        if (fileExists(stem + ".caffemodel")) net->copyTrainedFrom(model::readNetBinary(stem + ".caffemodel"), stem);
        Blob& in = net->blob("input");
        EXPECT_EQ(static_cast<size_t>(in.count()), x.size());
        withType(dtype, [&]<class T>() { std::copy(x.begin(), x.end(), in.mutableData<T>()); });
        net->forward();
        return test::valuesOf(net->blob("output"));
      };
      const auto caffes = test::readNpy(stem + ".npy").values;
      const auto ours = run(DType::kFloat32), exact = run(DType::kFloat64);
      ASSERT_EQ(ours.size(), caffes.size());
      double apart = 0, ourError = 0, caffesError = 0;
      for (size_t i = 0; i < ours.size(); ++i) {
        apart = test::larger(apart, std::fabs(ours[i] - caffes[i]));
        ourError = test::larger(ourError, std::fabs(ours[i] - exact[i]));
        caffesError = test::larger(caffesError, std::fabs(caffes[i] - exact[i]));
      }
      std::cout << g.name << ": ours from Caffe's " << apart << ", from double " << ourError << ", Caffe's from double "
                << caffesError << "\n";
      EXPECT_LE(apart, g.bound);
      EXPECT_LE(ourError, 1.5 * caffesError);
    }
}

const char* const kTwoLosses = R"(
name: "two"
layer { name: "in" type: "Input" top: "x" top: "label" input_param { shape { dim: 4 dim: 3 } shape { dim: 4 } } }
layer { name: "a" type: "InnerProduct" bottom: "x" top: "a" param { name: "shared" } param { lr_mult: 2 }
  inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
layer { name: "b" type: "InnerProduct" bottom: "a" top: "b" param { name: "shared" }
  inner_product_param { num_output: 3 bias_term: false weight_filler { type: "xavier" } } }
layer { name: "first" type: "SoftmaxWithLoss" bottom: "a" bottom: "label" top: "first" loss_weight: 0.5 }
layer { name: "second" type: "SoftmaxWithLoss" bottom: "b" bottom: "label" top: "second" }
)";

// A blob read twice, a parameter used twice, two weighted losses: all gradients against central differences.
TEST_F(NetTest, SharedBlobsAndParametersAddTheirGradients) {
  auto net = make(kTwoLosses, caffe::TRAIN, DType::kFloat64);
  ASSERT_EQ(net->learnables().size(), 2u);  // the shared weights, a's bias
  EXPECT_EQ(net->learnables()[1].lrMult, 2);
  for (int i = 0; i < 12; ++i) net->blob("x").mutableData<double>()[i] = std::sin(3.0 * i);
  for (int i = 0; i < 4; ++i) net->blob("label").mutableData<double>()[i] = i % 3;
  const double loss = net->forward();
  EXPECT_NEAR(loss, 0.5 * net->blob("first").dataAt(0) + net->blob("second").dataAt(0), 1e-12);
  net->clearParamDiffs();
  net->backward();
  for (const auto& p : net->learnables())
    for (int i = 0; i < p.blob->count(); ++i) {
      const double old = p.blob->dataAt(i), h = 1e-6;
      const auto lossWith = [&](double w) { return p.blob->mutableData<double>()[i] = w, net->forward(); };
      const double up = lossWith(old + h), down = lossWith(old - h);
      lossWith(old);
      EXPECT_NEAR(p.blob->diffAt(i), (up - down) / (2 * h), 1e-7) << p.label << " " << i;
    }
}

TEST_F(NetTest, BackwardGoesOnlyWhereSomethingLearns) {
  auto net = make(kTwoLosses, caffe::TRAIN);
  EXPECT_FALSE(net->needsBackward(0));
  int learning = 0;
  for (size_t i = 0; i < net->layers().size(); ++i) learning += net->needsBackward(static_cast<int>(i));
  EXPECT_GE(learning, 4);
  std::string frozen = kTwoLosses;
  for (size_t at; (at = frozen.find("param { name: \"shared\" }")) != std::string::npos;)
    frozen.replace(at, 24, "param { lr_mult: 0 }");
  frozen.replace(frozen.find("lr_mult: 2"), 10, "lr_mult: 0");
  auto still = make(frozen, caffe::TRAIN);
  for (size_t i = 0; i < still->layers().size(); ++i) EXPECT_FALSE(still->needsBackward(static_cast<int>(i))) << i;
}

TEST_F(NetTest, WrongWiringGetsASentence) {
  const std::string in =
      "layer { name: 'in' type: 'DummyData' top: 'x' dummy_data_param { shape { dim: 2 dim: 3 } } }\n";
  const struct {
    const char* layer;
    const char* words;
  } bad[] = {
      {"layer { name: 'r' type: 'ReLU' bottom: 'y' top: 'z' }",
       "Unknown bottom blob 'y' (layer 'r', bottom index 0); blobs made before it: x"},
      {"layer { name: 'r' type: 'ReLU' bottom: 'x' top: 'z' } layer { name: 's' type: 'Softmax' bottom: 'x' top: 'z' }",
       "'z'"},
      {"layer { name: 'r' type: 'Magic' bottom: 'x' top: 'z' }", "Unknown layer type: Magic (known types: A"},
      {"layer { name: 'r' type: 'ReLU' bottom: 'x' }", "layer 'r'"},
      {"layer { name: 'r' type: 'Concat' bottom: 'x' bottom: 'x' top: 'z' concat_param { axis: 7 } }", "axis"},
      {"layer { name: 'a' type: 'InnerProduct' bottom: 'x' top: 'a' param { name: 'w' } inner_product_param { "
       "num_output: 2 } } layer { name: 'b' type: 'InnerProduct' bottom: 'x' top: 'b' param { name: 'w' } "
       "inner_product_param { num_output: 5 } }",
       "Cannot share param 'w' owned by a/0 with layer 'b' (InnerProduct): shapes 2x3 and 5x3"},
  };
  const std::string elsewhere = refusal(
      "layer { name: 'd' type: 'DummyData' top: 'x' include { phase: TEST } dummy_data_param { shape { dim: 2 } } } "
      "layer { name: 'r' type: 'ReLU' bottom: 'x' top: 'y' }");
  EXPECT_NE(elsewhere.find("Unknown bottom blob 'x' (layer 'r', bottom index 0); blobs made before it: none\n"
                           "  in phase TRAIN, in which rules leave out layers d\n"),
            std::string::npos)
      << elsewhere;
  for (const auto& b : bad) {
    const std::string said = refusal("name: 'n' " + in + b.layer);
    EXPECT_NE(said.find(b.words), std::string::npos) << said;
    EXPECT_NE(said.find("test.prototxt"), std::string::npos) << said;
  }
}

TEST_F(NetTest, WeightsOfAnotherShapeAreRefusedAndOtherLayersIgnored) {
  const std::string text =
      "name: 'n' layer { name: 'in' type: 'DummyData' top: 'x' dummy_data_param { shape { dim: 2 "
      "dim: 3 } } } layer { name: 'ip' type: 'InnerProduct' bottom: 'x' top: 'y' "
      "inner_product_param { num_output: 2 weight_filler { type: 'xavier' } } }";
  auto net = make(text);
  caffe::NetParameter saved = net->toProto(false);
  saved.add_layer()->set_name("elsewhere");
  saved.mutable_layer(saved.layer_size() - 1)->add_blobs()->add_data(1);
  auto other = make(text);
  other->copyTrainedFrom(saved, "saved");
  for (int i = 0; i < 6; ++i) EXPECT_EQ(other->learnables()[0].blob->dataAt(i), net->learnables()[0].blob->dataAt(i));
  for (auto& layer : *saved.mutable_layer())
    if (layer.name() == "ip") layer.mutable_blobs(0)->mutable_shape()->set_dim(0, 3);
  EXPECT_THROW(other->copyTrainedFrom(saved, "saved"), Error);
}

// As a snapshot's: the second of a name goes to the second, where there is one, and to the first where there is not.
TEST_F(NetTest, WeightsOfEqualNamesGoToTheirLayers) {
  const auto text = [](const char* second) {
    const std::string ip = " inner_product_param { num_output: 3 bias_term: false weight_filler { type: 'xavier' } } }";
    return "name: 'n' layer { name: 'in' type: 'DummyData' top: 'x' dummy_data_param { shape { dim: 2 dim: 3 } } } "
           "layer { name: 'a' type: 'InnerProduct' bottom: 'x' top: 'y'" +
           ip + "layer { name: '" + second + "' type: 'InnerProduct' bottom: 'y' top: 'z'" + ip;
  };
  const auto weights = [](Net& net, size_t of) { return test::valuesOf(*net.learnables()[of].blob); };
  auto from = make(text("a")), equal = make(text("a")), one = make(text("b"));
  for (size_t of = 0; of < 2; ++of)
    for (int i = 0; i < 9; ++i)
      from->learnables()[of].blob->mutableData<float>()[i] = static_cast<float>(10 * of + static_cast<size_t>(i));
  equal->copyTrainedFrom(from->toProto(false), "saved");
  EXPECT_EQ(weights(*equal, 0), weights(*from, 0));
  EXPECT_EQ(weights(*equal, 1), weights(*from, 1));
  one->copyTrainedFrom(from->toProto(false), "saved");
  EXPECT_EQ(weights(*one, 0), weights(*from, 1)) << "the last one of a name, as in Caffe";
}

class WeightFilesTest : public NetTest {
 protected:
  static std::string ip(const std::string& name, const std::string& bottom, const std::string& top, const char* more) {
    return fmt::format(
        " layer {{ name: '{}' type: 'InnerProduct' bottom: '{}' top: '{}' {} inner_product_param {{ num_output: 3 "
        "bias_term: false weight_filler {{ type: 'xavier' }} }} }}",
        name, bottom, top, more);
  }
  static std::string two(const std::string& first, const std::string& second, const char* shared = "") {
    return "name: 'n' layer { name: 'in' type: 'DummyData' top: 'x' dummy_data_param { shape { dim: 2 dim: 3 } } }" +
           ip(first, "x", "y", shared) + ip(second, "y", "z", shared);
  }
  std::string saved(const std::string& text) {
    files_.push_back(testing::TempDir() + fmt::format("weight_files_{}_{}", ::getpid(), files_.size()));
    model::writeBinary(files_.back(), make(text)->toProto(false));
    return files_.back();
  }
  void TearDown() override {
    for (const auto& file : files_) std::remove(file.c_str());
  }
  std::string said(Net& net, const std::string& list) {
    try {
      copyTrainedFiles(net, list);
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  }
  using Names = std::vector<std::string>;
  std::vector<std::string> files_;
};

TEST_F(WeightFilesTest, ANetThatGetsNothingIsRefusedWithTheNamesOfBothSides) {
  const std::string own = saved(two("a", "b")), other = saved(two("c", "d"));
  auto net = make(two("a", "b"));
  EXPECT_EQ(net->untrained(), (Names{"a", "b"}));
  const std::string message = said(*net, other);
  EXPECT_NE(message.find(
                fmt::format("the weights {} fit no layer of net 'n': they are for c, d, and the net has a, b", other)),
            std::string::npos)
      << message;
  EXPECT_EQ(said(*net, other + "," + own), "");  // all together
  EXPECT_EQ(net->untrained(), Names{});
  auto half = make(two("a", "renamed"));  // fine-tuning
  EXPECT_EQ(said(*half, own), "");
  EXPECT_EQ(half->untrained(), Names{"renamed"});
  auto none = make("layer { name: 'in' type: 'DummyData' top: 'x' dummy_data_param { shape { dim: 2 } } }");
  EXPECT_EQ(said(*none, other), "");
  EXPECT_NE(said(*make(two("a", "b")), saved("layer { name: 'in' type: 'DummyData' top: 'x' dummy_data_param { shape "
                                             "{ dim: 2 } } }"))
                .find("hold no layer with values"),
            std::string::npos);
}

TEST_F(WeightFilesTest, ALayerThatBorrowsTrainedValuesIsTrained) {
  auto net = make(two("a", "b", "param { name: 'w' }"));
  EXPECT_EQ(said(*net, saved(two("a", "other"))), "");
  EXPECT_EQ(net->untrained(), Names{});
}

}  // namespace
}  // namespace crema::net
