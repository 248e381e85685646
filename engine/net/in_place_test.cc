// Layers in place, after one another and where blobs share memory: a layer's backward pass does not depend on what
// later layers wrote there. The witness is the same net with a blob for every layer, whose layers the conformance suite
// checks one by one. Every type of the registry is tested, or named below as one that cannot be.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

#include "model/proto_io.h"
#include "net/net.h"

namespace crema::net {
namespace {

const std::string kOver = "type: 'Power' power_param { scale: -3 shift: 0.5 }", kDrop = "type: 'Dropout'",
                  kEnd = "type: 'Flatten' flatten_param { axis: 0 }";

// Options that types need; the bottom is 6 x 4 x 4 x 4.
const std::map<std::string, std::string> kOptions = {
    {"Clip", "clip_param { min: 0.2 max: 1.7 }"},
    {"Convolution", "convolution_param { num_output: 3 kernel_size: 2 weight_filler { type: 'xavier' } }"},
    {"Deconvolution", "convolution_param { num_output: 3 kernel_size: 2 weight_filler { type: 'xavier' } }"},
    {"Im2col", "convolution_param { kernel_size: 2 }"},
    {"InnerProduct", "inner_product_param { num_output: 7 weight_filler { type: 'xavier' } }"},
    {"Log", "log_param { shift: 20 }"},
    {"LRN", "lrn_param { local_size: 3 alpha: 2 }"},
    {"MVN", "mvn_param { across_channels: true }"},
    {"Pooling", "pooling_param { kernel_size: 2 stride: 2 }"},
    {"Reduction", "reduction_param { axis: 1 operation: SUMSQ }"},
    {"Reshape", "reshape_param { shape { dim: 6 dim: 16 dim: 4 } }"},
    {"SPP", "spp_param { pyramid_height: 2 }"},
    {"Tile", "tile_param { tiles: 2 }"},
};
const std::set<std::string> kWithoutGradient = {"Accuracy", "ArgMax", "Embed", "Threshold", "Silence"};
const std::set<std::string> kOtherBottoms = {"BatchReindex",
                                             "ContrastiveLoss",
                                             "Crop",
                                             "Eltwise",
                                             "EuclideanLoss",
                                             "Filter",
                                             "HingeLoss",
                                             "InfogainLoss",
                                             "LSTM",
                                             "LSTMUnit",
                                             "RNN",
                                             "MultinomialLogisticLoss",
                                             "Parameter",
                                             "SigmoidCrossEntropyLoss",
                                             "SoftmaxWithLoss",
                                             "Input",
                                             "DummyData",
                                             "Data",
                                             "MemoryData",
                                             "CoSData",
                                             "HDF5Data",
                                             "HDF5Output",
                                             "ImageData",
                                             "WindowData",
                                             "Python"};

std::vector<std::string> triedTypes() {
  std::vector<std::string> types;
  for (const auto& [type, entry] : layers::builtinLayers().entries())
    if (!kWithoutGradient.count(type) && !kOtherBottoms.count(type)) types.push_back(type);
  return types;
}
std::string described(const std::string& type) {
  const auto options = kOptions.find(type);
  return "type: '" + type + "' " + (options == kOptions.end() ? "" : options->second);
}

// A loss of a blob of any shape.
std::string loss(const std::string& blob) {
  return fmt::format(R"(
    layer {{ name: 'rows of {0}' type: 'Reshape' bottom: '{0}' top: 'rows of {0}' reshape_param {{ shape {{ dim: 6 dim: -1 }} }} }}
    layer {{ name: 'ip of {0}' type: 'InnerProduct' bottom: 'rows of {0}' top: 'ip of {0}'
            inner_product_param {{ num_output: 6 weight_filler {{ type: 'xavier' }} }} }}
    layer {{ name: 'loss of {0}' type: 'SoftmaxWithLoss' bottom: 'ip of {0}' bottom: 'label' top: 'loss of {0}' }})",
                     blob);
}

class InPlace : public testing::Test {
 protected:
  std::unique_ptr<Net> make(const std::string& layers) {
    const std::string text = R"(
      layer { name: 'in' type: 'Input' top: 'x' top: 'label' input_param { shape { dim: 6 dim: 3 dim: 4 dim: 4 } shape { dim: 6 } } }
      layer { name: 'conv' type: 'Convolution' bottom: 'x' top: 'y' convolution_param { num_output: 4 kernel_size: 1
              weight_filler { type: 'xavier' } bias_filler { value: 0.5 } } }
    )" + layers;
    NetOptions o;
    o.kernels = &kernels_, o.dtype = DType::kFloat64;
    caffe::NetState state;
    state.set_phase(caffe::TRAIN);
    auto net = std::make_unique<Net>(model::parseText<caffe::NetParameter>(text, "net"), state, o, "net");
    for (int i = 0; i < net->blob("x").count(); ++i) net->blob("x").mutableData<double>()[i] = std::sin(1.0 + i * i);
    for (int i = 0; i < 6; ++i) net->blob("label").mutableData<double>()[i] = i;
    return net;
  }
  std::vector<double> gradients(const std::string& layers) {
    const auto net = make(layers);
    net->clearParamDiffs();
    net->forward(), net->backward();
    std::vector<double> all;
    double size = 0;
    for (const auto& p : net->learnables())
      for (int i = 0; !p.keptPerPass && i < p.blob->count(); ++i) all.push_back(p.blob->diffAt(i));
    for (const double g : all) size += std::fabs(g);
    EXPECT_GT(size, 1e-3);
    return all;
  }

  kernels::Context kernels_{kernels::bestIsa(), 1};
};

struct Link {
  std::string layer;
  bool mayOverwrite;
};

// In place where the layer may be.
std::string chain(const std::vector<Link>& links, bool inPlace) {
  std::string text, blob = "y";
  for (size_t i = 0; i < links.size(); ++i) {
    const std::string top = inPlace && links[i].mayOverwrite ? blob : "y" + std::to_string(i);
    text += fmt::format("layer {{ name: 'l{}' {} bottom: '{}' top: '{}' }}\n", i, links[i].layer, blob, top);
    blob = top;
  }
  return text + fmt::format("layer {{ name: 'end' {} bottom: '{}' top: 'end' }}", kEnd, blob);
}

bool worksInPlace(const std::string& type) {
  layers::LayerContext context;
  layers::DataOptions data;
  context.data = &data;
  return layers::builtinLayers()
      .make(model::parseText<caffe::LayerParameter>(described(type), "layer"), context)
      ->allowsInPlace();
}

TEST_F(InPlace, TheRegistryKnowsWhichLayersShareTheirBottomsMemory) {
  for (const std::string& type : triedTypes()) {
    const auto net = make(fmt::format("layer {{ name: 'l' {} bottom: 'y' top: 'z' }}", described(type)));
    const bool same = net->blob("z").data<double>() == net->blob("y").data<double>();
    EXPECT_EQ(same, layers::builtinLayers().sharesMemory(type)) << type;
  }
}

TEST_F(InPlace, ChainsHaveTheGradientsOfSeparateBlobs) {
  const Link over{kOver, true}, drop{kDrop, true};
  int inPlace = 0;
  for (const std::string& type : triedTypes()) {
    SCOPED_TRACE(type);
    const Link layer{described(type), worksInPlace(type)};
    inPlace += layer.mayOverwrite;
    for (const auto& links : {std::vector{layer, over}, {layer, drop}, {over, layer, over, drop, over}})
      EXPECT_EQ(gradients(chain(links, true) + loss("end")), gradients(chain(links, false) + loss("end")));
    if (layer.mayOverwrite) {
      const std::vector links{over, layer, over, layer, drop};
      EXPECT_EQ(gradients(chain(links, true) + loss("end")), gradients(chain(links, false) + loss("end")));
    }
  }
  EXPECT_GE(inPlace, 17);
}

// y -> layer -> s, y -> Flatten -> r, r overwritten: by way of the Split of y that is the layer's bottom.
std::string branches(const std::string& layer, const std::string& views, const std::string& over,
                     const std::string& to) {
  return fmt::format("layer {{ name: 'l' {} bottom: 'y' top: 's' }}", layer) + loss("s") + views +
         fmt::format(
             "layer {{ name: 'over' {0} bottom: 'r' top: '{1}' }} layer {{ name: 'end' {2} bottom: '{1}' top: 'end' }}",
             over, to, kEnd) +
         loss("end");
}

TEST_F(InPlace, BranchesThatShareMemoryHaveTheGradientsOfSeparateBlobs) {
  const std::string
      flat = "layer { name: 'r' type: 'Flatten' bottom: 'y' top: 'r' }",
      deeper =
          R"(layer { name: 'q' type: 'Reshape' bottom: 'y' top: 'q' reshape_param { shape { dim: 6 dim: 8 dim: 8 } } }
                                layer { name: 'r' type: 'Flatten' bottom: 'q' top: 'r' })";
  for (const std::string& type : triedTypes())
    for (const std::string& over : {std::string("type: 'ReLU'"), kOver})
      for (const std::string& views : {flat, deeper}) {
        SCOPED_TRACE(type + " before " + over);
        EXPECT_EQ(gradients(branches(described(type), views, over, "r")),
                  gradients(branches(described(type), views, over, "z")));
      }
}

// The layer in place reads the memory that it overwrites by its other bottom too.
TEST_F(InPlace, ALayerMayReadWhatItOverwrites) {
  for (const std::string& type : {std::string("type: 'Eltwise' eltwise_param { operation: PROD }"),
                                  std::string("type: 'Scale' scale_param { axis: 0 }")}) {
    const auto text = [&](const std::string& top) {
      return fmt::format(
                 R"(layer {{ name: 'r' {0} bottom: 'y' top: 'r' }} layer {{ name: 'q' {0} bottom: 'y' top: 'q' }}
                            layer {{ name: 'l' {1} bottom: 'r' bottom: 'q' top: '{2}' }}
                            layer {{ name: 'end' {0} bottom: '{2}' top: 'end' }})",
                 kEnd, type, top) +
             loss("end");
    };
    SCOPED_TRACE(type);
    EXPECT_EQ(gradients(text("r")), gradients(text("z")));
  }
}

// As in Caffe: a layer that reads the shared memory after the layer in place reads what that one wrote.
TEST_F(InPlace, WhoReadsLaterReadsWhatIsThere) {
  const auto net = make(
      "layer { name: 'early' type: 'TanH' bottom: 'y' top: 'early' }"
      "layer { name: 'r' type: 'Flatten' bottom: 'y' top: 'r' }"
      "layer { name: 'over' " +
      kOver +
      " bottom: 'r' top: 'r' }"
      "layer { name: 'late' type: 'TanH' bottom: 'y' top: 'late' }");
  net->forward();
  for (int i = 0; i < net->blob("r").count(); ++i) {
    EXPECT_EQ(net->blob("late").dataAt(i), std::tanh(net->blob("r").dataAt(i)));
    EXPECT_NEAR(net->blob("early").dataAt(i), std::tanh((net->blob("r").dataAt(i) - 0.5) / -3), 1e-15);
  }
}

// A Split copies nothing where none of its readers overwrites its memory.
TEST_F(InPlace, SplitsShareMemoryWhereNothingIsOverwritten) {
  const auto shared = [](Net& net, const std::string& layer) {
    for (size_t i = 0; i < net.layers().size(); ++i)
      if (net.layers()[i]->name() == layer) {
        std::vector<bool> tops;
        for (const Blob* t : net.tops(static_cast<int>(i)))
          tops.push_back(t->dataMemory() == net.bottoms(static_cast<int>(i))[0]->dataMemory());
        return tops;
      }
    return std::vector<bool>();
  };
  const std::string two =
      "layer { name: 'l' type: 'TanH' bottom: 'y' top: 's' } layer { name: 'r' type: 'Flatten' bottom: 'y' top: 'r' }";
  const auto plain = make(two), apart = make(two + "layer { name: 'over' type: 'ReLU' bottom: 'r' top: 'r' }");
  plain->forward(), apart->forward();
  EXPECT_EQ(shared(*plain, "y_conv_0_split"), (std::vector{true, true}));
  EXPECT_EQ(shared(*apart, "y_conv_0_split"), (std::vector{false, true}));
}

}  // namespace
}  // namespace crema::net
