#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "model/filter.h"
#include "model/proto_io.h"
#include "model/splits.h"
#include "model/upgrade.h"
#include "support/message_of.h"
#include "support/shared_data.h"

namespace crema::model {
namespace {

using google::protobuf::util::MessageDifferencer;

caffe::NetParameter net(const std::string& text) { return parseText<caffe::NetParameter>(text, "text"); }

void same(const caffe::NetParameter& got, const caffe::NetParameter& want) {
  EXPECT_TRUE(MessageDifferencer::Equals(got, want)) << "got:\n" << toText(got) << "want:\n" << toText(want);
}

using test::messageOf;

TEST(Text, MistakesHaveLineAndColumn) {
  const std::string m = messageOf(
      [] { parseText<caffe::NetParameter>("name: \"x\"\nlayer { nmae: \"y\" }\nlayer { tpye: 1 }\n", "a.prototxt"); });
  EXPECT_EQ(m.rfind("a.prototxt:2:", 0), 0u) << m;
  EXPECT_NE(m.find("nmae"), std::string::npos) << m;
  const auto end = [](const std::string& text) {
    const std::string said = messageOf([&] { parseText<caffe::NetParameter>(text, "a"); });
    return said.substr(said.find("; ") == std::string::npos ? 0 : said.find("; "));
  };
  EXPECT_EQ(end("layer { nmae: 'y' }"), "; did you mean name?");
  EXPECT_EQ(end("layer { spatial_pyramid: 1 }"),
            "; check the spelling, or whether the field belongs to another message or to a fork of Caffe");
  EXPECT_EQ(end("layer { pooling_param { pool: MAXIMUM } }"), "; use one of MAX, AVE, STOCHASTIC");
  EXPECT_EQ(end("layer { pooling_param { kernel_size: -2 } }"), "; this field takes no negative number");
}

TEST(Text, EncodingsOfEditors) {
  EXPECT_EQ(parseText<caffe::NetParameter>("\xef\xbb\xbfname: 'x'", "a").name(), "x");
  EXPECT_NE(messageOf([] { parseText<caffe::NetParameter>("\xff\xfen", "a.prototxt"); }).find("save it as UTF-8"),
            std::string::npos);
}

TEST(Text, ANetHasLayers) {
  const test::TemporaryFolder folder;
  writeFileAtomically(folder.file("empty.prototxt"), "name: 'nothing'\n");
  EXPECT_NE(messageOf([&] { readNet(folder.file("empty.prototxt")); }).find("empty.prototxt describes no layers"),
            std::string::npos);
}

TEST(Binary, TextIsRecognised) {
  EXPECT_NE(messageOf([] {
              caffe::NetParameter n;
              parseBinaryInto("name: 'x'\nlayer { }\n", "m.caffemodel", &n);
            }).find("is it a prototxt?"),
            std::string::npos);
}

TEST(Binary, DamageIsNamed) {
  EXPECT_NE(messageOf([] {
              caffe::NetParameter n;
              parseBinaryInto("\xff\xff\xff", "m.caffemodel", &n);
            }).find("m.caffemodel is damaged"),
            std::string::npos);
  EXPECT_NE(messageOf([] { readNetBinary("/no/such.caffemodel"); }).find("/no/such.caffemodel"), std::string::npos);
}

TEST(Filter, RulesOfPhaseLevelAndStage) {
  const auto n = net(R"(layer { name: "a" }
    layer { name: "train" include { phase: TRAIN } }
    layer { name: "not_test" exclude { phase: TEST } }
    layer { name: "deep" include { min_level: 2 } }
    layer { name: "flat" include { max_level: 0 } }
    layer { name: "staged" include { phase: TEST stage: "s" stage: "t" } }
    layer { name: "unstaged" exclude { not_stage: "s" } })");
  const auto names = [&](const std::string& state) {
    std::string all;
    const auto kept = filterNet(n, parseText<caffe::NetState>(state, "state"));
    for (const auto& layer : kept.layer()) all += layer.name() + " ";
    same(filterNet(kept, parseText<caffe::NetState>(state, "state")), kept);
    return all;
  };
  EXPECT_EQ(names("phase: TRAIN"), "a train not_test flat ");
  EXPECT_EQ(names("phase: TEST level: 2"), "a deep ");
  EXPECT_EQ(names("phase: TEST stage: 's' stage: 't'"), "a flat staged unstaged ");
  EXPECT_THROW(filterNet(net("layer { name: 'x' include { } exclude { } }"), {}), Error);
}

TEST(Splits, NamesAndLossWeightsAsCaffe) {
  const auto in = net(R"(layer { name: "data" type: "Data" top: "data" top: "label" }
    layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip" }
    layer { name: "relu" type: "ReLU" bottom: "ip" top: "ip" }
    layer { name: "a" type: "Accuracy" bottom: "ip" bottom: "label" top: "acc" }
    layer { name: "l" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" loss_weight: 2 }
    layer { name: "s" type: "Silence" bottom: "loss" })");
  const auto want = net(R"(layer { name: "data" type: "Data" top: "data" top: "label" }
    layer { name: "label_data_1_split" type: "Split" bottom: "label" top: "label_data_1_split_0" top: "label_data_1_split_1" }
    layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip" }
    layer { name: "relu" type: "ReLU" bottom: "ip" top: "ip" }
    layer { name: "ip_relu_0_split" type: "Split" bottom: "ip" top: "ip_relu_0_split_0" top: "ip_relu_0_split_1" }
    layer { name: "a" type: "Accuracy" bottom: "ip_relu_0_split_0" bottom: "label_data_1_split_0" top: "acc" }
    layer { name: "l" type: "SoftmaxWithLoss" bottom: "ip_relu_0_split_1" bottom: "label_data_1_split_1" top: "loss" loss_weight: 0 }
    layer { name: "loss_l_0_split" type: "Split" bottom: "loss" top: "loss_l_0_split_0" top: "loss_l_0_split_1" loss_weight: 2 loss_weight: 0 }
    layer { name: "s" type: "Silence" bottom: "loss_l_0_split_1" })");
  same(insertSplits(in), want);
  same(insertSplits(want), want);
  EXPECT_NE(messageOf([] {
              insertSplits(net("layer { name: 'x' bottom: 'none' }"));
            }).find("Unknown bottom blob 'none' (layer 'x', bottom index 0)"),
            std::string::npos);
}

TEST(Upgrade, V1Layers) {
  auto n = net(R"(name: "n" input: "data" input_dim: 1 input_dim: 3 input_dim: 8 input_dim: 8
    layers { name: "c" type: CONVOLUTION bottom: "data" top: "c" blobs_lr: 1 blobs_lr: 2 weight_decay: 1 weight_decay: 0 param: "w"
             convolution_param { num_output: 4 kernel_size: 3 } include { phase: TEST } }
    layers { name: "l" type: SOFTMAX_LOSS bottom: "c" top: "l" loss_weight: 3 })");
  EXPECT_TRUE(upgradeNet(&n, "text"));
  same(n, net(R"(name: "n"
    layer { name: "input" type: "Input" top: "data" input_param { shape { dim: 1 dim: 3 dim: 8 dim: 8 } } }
    layer { name: "c" type: "Convolution" bottom: "data" top: "c" param { name: "w" lr_mult: 1 decay_mult: 1 } param { lr_mult: 2 decay_mult: 0 }
            convolution_param { num_output: 4 kernel_size: 3 } include { phase: TEST } }
    layer { name: "l" type: "SoftmaxWithLoss" bottom: "c" top: "l" loss_weight: 3 })"));
  const auto once = n;
  EXPECT_TRUE(upgradeNet(&n, "text"));
  same(n, once);
}

TEST(Upgrade, V0LayersAndPadding) {
  auto n = net(R"(input: "data" input_dim: 1 input_dim: 1 input_dim: 9 input_dim: 9
    layers { layer { name: "d" type: "data" source: "db" batchsize: 7 scale: 0.5 cropsize: 5 mirror: true meanfile: "m" } top: "x" top: "label" }
    layers { layer { name: "p" type: "padding" pad: 2 } bottom: "data" top: "pd" }
    layers { layer { name: "c" type: "conv" num_output: 3 kernelsize: 5 stride: 2 group: 1 biasterm: false blobs_lr: 1 weight_filler { type: "xavier" } } bottom: "pd" top: "c" }
    layers { layer { name: "q" type: "pool" pool: AVE kernelsize: 3 } bottom: "c" top: "q" })");
  EXPECT_TRUE(upgradeNet(&n, "text"));
  same(n, net(R"(layer { name: "input" type: "Input" top: "data" input_param { shape { dim: 1 dim: 1 dim: 9 dim: 9 } } }
    layer { name: "d" type: "Data" top: "x" top: "label" transform_param { scale: 0.5 crop_size: 5 mirror: true mean_file: "m" } data_param { source: "db" batch_size: 7 } }
    layer { name: "c" type: "Convolution" bottom: "data" top: "c" param { lr_mult: 1 }
            convolution_param { num_output: 3 kernel_size: 5 stride: 2 group: 1 bias_term: false pad: 2 weight_filler { type: "xavier" } } }
    layer { name: "q" type: "Pooling" bottom: "c" top: "q" pooling_param { pool: AVE kernel_size: 3 } })"));
}

TEST(Upgrade, BatchNormSolverTypeAndMixing) {
  auto n = net("layer { name: 'b' type: 'BatchNorm' param { } param { lr_mult: 1 } param { } }");
  upgradeNet(&n, "text");
  for (const auto& p : n.layer(0).param()) EXPECT_EQ(p.lr_mult() + p.decay_mult(), 0);
  auto mixed = net("layer { name: 'a' } layers { name: 'b' }");
  EXPECT_THROW(upgradeNet(&mixed, "text"), Error);
  auto s = parseText<caffe::SolverParameter>("solver_type: NESTEROV", "s");
  upgradeSolver(&s, "s");
  EXPECT_EQ(s.type(), "Nesterov");
  auto both = parseText<caffe::SolverParameter>("solver_type: NESTEROV type: 'SGD'", "s");
  EXPECT_THROW(upgradeSolver(&both, "s"), Error);
}

// --- the collection of real prototxts, with the messages that protoc made of them

std::vector<std::vector<std::string>> index(const std::string& folder) {
  std::vector<std::vector<std::string>> rows;
  std::istringstream in(readFile(folder + "/index.tsv"));
  for (std::string line; std::getline(in, line);) {
    std::vector<std::string> row;
    std::istringstream cells(line);
    for (std::string cell; std::getline(cells, cell, '\t');) row.push_back(cell);
    if (!row.empty() && row[0] != "file") rows.push_back(row);
  }
  return rows;
}

// Folders of prototxts: tests/goldens/prototxt, written for this project, and the shared data's where the machine has
// them.
struct Collection {
  std::string folder, messages;  // of the prototxts, and of the .pb files beside them
  bool own;
};
std::vector<Collection> collections(const std::string& name, const test::TemporaryFolder& unpacked) {
  const std::string own = std::string(CREMA_SOURCE_DIR) + "/tests/goldens/prototxt/" + name;
  std::vector<Collection> all = {{own, own, true}};
  if (const auto shared = test::sharedData("prototxt/" + name)) {
    const std::string packed = *shared + "/binary.tar.xz";
    if (fileExists(packed) && std::system(("tar xJf '" + packed + "' -C " + unpacked.path()).c_str()) != 0)
      ADD_FAILURE() << "cannot unpack the goldens; is xz-utils installed?";
    all.push_back({*shared, unpacked.path(), false});
  }
  return all;
}

template <class M>
void compareWithGoldens(const std::string& name, int ownOnes, int sharedOnes) {
  const test::TemporaryFolder unpacked;
  for (const Collection& c : collections(name, unpacked)) {
    int compared = 0;
    for (const auto& row : index(c.folder)) {
      const std::string stem = row[0].substr(0, row[0].rfind('.'));
      const auto got = readText<M>(c.folder + "/" + row[0]);
      const auto want = readBinary<M>(joinPath(c.messages, stem + ".pb"));
      EXPECT_EQ(got.SerializeAsString(), want.SerializeAsString()) << row[0];
      ++compared;
    }
    EXPECT_EQ(compared, c.own ? ownOnes : sharedOnes) << c.folder;
  }
}

TEST(Goldens, NetsParseToTheirMessages) { compareWithGoldens<caffe::NetParameter>("nets", 4, 150); }
TEST(Goldens, SolversParseToTheirMessages) { compareWithGoldens<caffe::SolverParameter>("solvers", 3, 50); }
TEST(Goldens, UnknownLayersParse) { compareWithGoldens<caffe::NetParameter>("nets_unknown_layer", 1, 7); }

TEST(Goldens, UnparsableOnesAreRefusedWhereProtocRefusesThem) {
  const test::TemporaryFolder unpacked;
  for (const Collection& c : collections("unparsable", unpacked)) {
    int refused = 0;
    for (const auto& row : index(c.folder)) {
      const std::string path = c.folder + "/" + row[0];
      const bool solver = row[0].find("solver") != std::string::npos;
      const std::string message = messageOf(
          [&] { solver ? void(readText<caffe::SolverParameter>(path)) : void(readText<caffe::NetParameter>(path)); });
      const std::string first = row.back();  // "input:66:3: Unknown enumeration value ..."
      const std::string position = first.substr(first.find(':'), first.find(": ") - first.find(':'));
      EXPECT_NE(message.find(row[0] + position), std::string::npos) << message << "\n  protoc said: " << first;
      ++refused;
    }
    EXPECT_EQ(refused, c.own ? 5 : 10);
  }
}

TEST(Goldens, CaffeOnSparksDialectParses) {
  const test::TemporaryFolder unpacked;
  for (const Collection& c : collections("dialects", unpacked)) {
    int parsed = 0;
    for (const auto& row : index(c.folder))
      if (row[0].rfind("yahoo__", 0) == 0)
        parsed += readText<caffe::NetParameter>(c.folder + "/" + row[0]).layer_size() > 0;
    EXPECT_GE(parsed, c.own ? 1 : 9);
  }
}

TEST(Goldens, EveryOldNetUpgradesWhole) {
  setLogLevel(LogLevel::kWarning);
  const test::TemporaryFolder unpacked;
  for (const Collection& c : collections("nets", unpacked)) {
    int old = 0;
    for (const auto& row : index(c.folder)) {
      auto n = readText<caffe::NetParameter>(c.folder + "/" + row[0]);
      old += n.layers_size() > 0;
      EXPECT_TRUE(upgradeNet(&n, row[0])) << row[0];
      EXPECT_EQ(n.layers_size(), 0) << row[0];
      for (const auto& layer : n.layer()) EXPECT_FALSE(layer.type().empty()) << row[0];
    }
    EXPECT_EQ(old, c.own ? 2 : 38);
  }
  setLogLevel(LogLevel::kInfo);
}

}  // namespace
}  // namespace crema::model
