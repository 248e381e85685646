// Real prototxts: every net whose text gives its input shape can be built, in each of its phases. Ours (the examples,
// the large nets, unusual forms of text), and published ones where the machine has them.
#include <gtest/gtest.h>

#include <filesystem>

#include "base/error.h"
#include "base/log.h"
#include "model/blob_names.h"
#include "model/filter.h"
#include "model/splits.h"
#include "model/upgrade.h"
#include "net/net.h"
#include "support/shared_data.h"

namespace crema::net {
namespace {

// A layer that reads files becomes zeros of the shape that its crop_size gives; false when it gives none.
bool withoutFiles(caffe::LayerParameter& layer) {
  static const std::set<std::string> kReaders = {"Data", "ImageData", "WindowData", "HDF5Data"};
  if (!kReaders.count(layer.type())) {
    layer.mutable_transform_param()->clear_mean_file();
    return true;
  }
  const auto& t = layer.transform_param();
  const int crop = static_cast<int>(std::max(t.crop_size(), layer.window_data_param().crop_size()));
  if (!crop || layer.type() == "HDF5Data") return false;
  const int channels =
      t.mean_value_size() == 1 || (layer.type() == "ImageData" && !layer.image_data_param().is_color()) ? 1 : 3;
  layer.set_type("DummyData");
  for (int top = 0; top < layer.top_size(); ++top) {
    auto* shape = layer.mutable_dummy_data_param()->add_shape();
    shape->add_dim(2);
    for (const int d : {channels, crop, crop})
      if (top == 0) shape->add_dim(d);
  }
  return true;
}

// Nets that Caffe refuses too, and nets with Python layers whose modules are missing here.
const std::map<std::string, std::string> kNamesRefused = {
    {"BVLC__examples__pycaffe__linreg", "Python"},
    {"BVLC__models__intel_optimized_models__VNet__train_noPooling_ResNet_cinque", "Python"},
    {"BVLC__examples__triplet__lfw_triplet", "blob size exceeds INT_MAX: shape 10000x20x146x126"},
    {"BVLC__examples__rgbdPeople-finetuning__rgbdPeople_finetune_val", "Unknown bottom blob 'prob'"}};

enum class Outcome { kBuilt, kUnknownShape, kNoNet, kRefused };

Outcome build(caffe::NetParameter p, caffe::Phase phase, std::string* message) {
  caffe::NetState state;
  state.set_phase(phase);
  const auto kept = model::filterNet(p, state);
  bool known = true, input = false;
  for (auto& layer : *p.mutable_layer()) known &= withoutFiles(layer);
  for (const auto& layer : kept.layer()) input |= layer.bottom_size() == 0;
  if (!input) return Outcome::kNoNet;  // its data layer is in the other phase
  if (!known) return Outcome::kUnknownShape;
  kernels::Context kernels(kernels::bestIsa(), 1);
  NetOptions o;
  o.kernels = &kernels, o.fills = false, o.data.source = layers::FromNowhere{};
  try {
    Net net(p, state, o, "");
    const auto outputs = model::blobNames(model::insertSplits(kept)).outputs;
    EXPECT_EQ(net.outputs(), std::vector<std::string>(outputs.begin(), outputs.end()));
    return net.layers().empty() ? Outcome::kNoNet : Outcome::kBuilt;
  } catch (const Error& e) {
    *message = e.what();
    return Outcome::kRefused;
  }
}

struct Built {
  int built = 0, unknown = 0;
};

Built buildAll(const std::string& folder) {
  Built all;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    const std::string name = file.path().filename().string();
    if (file.path().extension() != ".prototxt" || name.find("solver") != std::string::npos) continue;
    if (name == "lrcn_cos.prototxt") continue;  // its solver asks for stages
    for (const auto phase : {caffe::TRAIN, caffe::TEST}) {
      std::string message;
      const Outcome o = build(model::readNet(file.path()), phase, &message);
      all.built += o == Outcome::kBuilt, all.unknown += o == Outcome::kUnknownShape;
      const auto expected = kNamesRefused.find(name.substr(0, name.find('.')));
      if (expected != kNamesRefused.end())
        EXPECT_NE(message.find(expected->second), std::string::npos) << name << ": " << message;
      else
        EXPECT_NE(o, Outcome::kRefused) << name << ", phase " << caffe::Phase_Name(phase) << ": " << message;
    }
  }
  std::printf("%s: %d nets built, %d whose shapes only their data know\n", folder.c_str(), all.built, all.unknown);
  return all;
}

TEST(WrittenNets, EveryNetWhoseInputShapeIsKnownIsBuilt) {
  setLogLevel(LogLevel::kWarning);
  Built own;
  for (const char* folder :
       {CREMA_SOURCE_DIR "/examples", CREMA_ZOO, CREMA_SOURCE_DIR "/tests/goldens/recorded/layers"})
    own.built += buildAll(folder).built;
  EXPECT_GE(own.built, 32);
  if (const auto others = test::sharedData("prototxt/nets")) {
    const int built = buildAll(*others).built;
    EXPECT_GE(built, 150);
  }
  setLogLevel(LogLevel::kInfo);
}

}  // namespace
}  // namespace crema::net
