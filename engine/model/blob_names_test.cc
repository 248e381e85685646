// What is read off a net's description alone: its blobs, its outputs, what of them needs a label.
#include "model/blob_names.h"

#include <gtest/gtest.h>

#include "model/filter.h"
#include "model/label_blobs.h"
#include "model/proto_io.h"
#include "model/splits.h"

namespace crema::model {
namespace {

// The blobs of a net that shares, splits and hides some; written_nets_test.cc compares outputs with built nets.
TEST(BlobNames, AreWhatLayersMakeAndWhatNoneTakes) {
  const BlobNames blobs = blobNames(insertSplits(parseText<caffe::NetParameter>(R"(
    layer { name: "d" type: "Data" top: "data" top: "label" }
    layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip" }
    layer { name: "relu" type: "ReLU" bottom: "ip" top: "ip" }
    layer { name: "a" type: "Accuracy" bottom: "ip" bottom: "label" top: "acc" }
    layer { name: "l" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" })",
                                                                                "net")));
  EXPECT_EQ(blobs.outputs, (std::set<std::string>{"acc", "loss"}));
  for (const char* name : {"data", "label", "ip", "acc", "loss"}) EXPECT_TRUE(blobs.made.count(name)) << name;
  EXPECT_FALSE(blobs.made.count("relu"));
}

TEST(LabelBlobs, DependOnFurtherTopsOfTheDataLayerInTheFilteredNet) {
  const auto all = parseText<caffe::NetParameter>(R"(layer { name: "d" type: "MemoryData" top: "data" top: "label" }
    layer { name: "scaled" type: "Power" bottom: "data" top: "data" }
    layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip" }
    layer { name: "relu" type: "ReLU" bottom: "ip" top: "ip" }
    layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" exclude { stage: "deploy" } }
    layer { name: "half" type: "Power" bottom: "loss" top: "half" exclude { stage: "deploy" } }
    layer { name: "one" type: "Power" bottom: "label" top: "label" exclude { stage: "deploy" } }
    layer { name: "eaten" type: "Silence" bottom: "ip" bottom: "label" }
    layer { name: "prob" type: "Softmax" bottom: "ip" top: "prob" include { stage: "deploy" } }
    layer { name: "side" type: "TanH" bottom: "data" top: "side" })",
                                                  "net");
  const auto blobs = [&](const std::string& state) {
    return labelBlobs(filterNet(all, parseText<caffe::NetState>(state, "state")));
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(blobs("phase: TEST").dependent, Names({"label", "loss", "half"}));
  EXPECT_EQ(blobs("phase: TEST").outputsWithout, Names({"ip", "side"}));
  EXPECT_EQ(blobs("phase: TEST stage: 'deploy'").dependent, Names({"label"}));
  EXPECT_EQ(blobs("phase: TEST stage: 'deploy'").outputsWithout, Names({"prob", "side"}));
}

}  // namespace
}  // namespace crema::model
