// Trained models as files of the binary format.
#include "model/trained.h"

#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <string_view>
#include <utility>

#include "base/file.h"
#include "model/proto_io.h"
#include "support/message_of.h"

namespace crema::model {
namespace {

using test::messageOf;

// What eachTrained() gives of the file: its layers in order, and in how many calls.
std::pair<caffe::NetParameter, int> inParts(const std::string& path) {
  caffe::NetParameter all;
  int calls = 0;
  eachTrained(path, [&](const Trained& some) {
    ++calls;
    for (const auto& layer : some.net.layer()) *all.add_layer() = layer;
  });
  return {all, calls};
}

TEST(Trained, LayersOfAModelComeOneByOneWhereTheFileAllowsIt) {
  const auto plain = parseText<caffe::NetParameter>(
      "name: 'n' force_backward: true state { phase: TRAIN } layer { name: 'a' blobs { shape { dim: 2 } data: 1 data: "
      "2 } } "
      "layer { name: 'b' } layer { name: 'c' blobs { num: 1 channels: 1 height: 1 width: 1 double_data: 3 } }",
      "text");
  const std::string folder = ::testing::TempDir(), path = folder + "crema_parts.caffemodel";
  writeBinary(path, plain);
  EXPECT_EQ(readFile(path), plain.SerializeAsString());
  const auto [layers, calls] = inParts(path);
  EXPECT_EQ(calls, 3);
  caffe::NetParameter want;
  *want.mutable_layer() = readTrained(path).net.layer();
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(layers, want)) << toText(layers);
  const auto old = parseText<caffe::NetParameter>(
      "layers { name: 'a' type: INNER_PRODUCT blobs { data: 1 } } layers { name: 'b' type: RELU }", "text");
  writeBinary(path, old);
  EXPECT_EQ(inParts(path).second, 1);
  EXPECT_EQ(inParts(path).first.layer(0).type(), "InnerProduct");
  const std::string whole = plain.SerializeAsString();
  for (size_t size = 0; size < whole.size(); ++size) {  // cut anywhere: as it is read at once
    writeFileAtomically(path, std::string_view(whole).substr(0, size));
    const std::string error = messageOf([&] { readTrained(path); });
    EXPECT_EQ(messageOf([&] { inParts(path); }), error) << size;
  }
  EXPECT_EQ(messageOf([&] { inParts(folder + "none"); }), messageOf([&] { readTrained(folder + "none"); }));
  std::remove(path.c_str());
}

}  // namespace
}  // namespace crema::model
