// Trained models as files of the binary format.
#include "model/trained.h"

#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "model/proto_io.h"
#include "model/stored_model.h"
#include "support/message_of.h"

namespace crema::model {
namespace {

using test::messageOf;

// With the values that are still in the file.
caffe::LayerParameter wholeLayer(const Trained& some, int l) {
  caffe::LayerParameter layer = some.net.layer(l);
  for (int b = 0; b < layer.blobs_size(); ++b) {
    std::vector<float> values(some.valuesOf(l, b).size() / sizeof(float));
    EXPECT_TRUE(values.empty() || layer.blobs(b).data().empty());
    if (!values.empty()) some.copyValues(l, b, values.data());
    layer.mutable_blobs(b)->mutable_data()->Add(values.begin(), values.end());
  }
  return layer;
}

// The layers that useTrained() gives of the file, with their values.
caffe::NetParameter used(const std::string& path) {
  caffe::NetParameter all;
  useTrained(path, [&](const Trained& some) {
    for (int l = 0; l < some.net.layer_size(); ++l) *all.add_layer() = wholeLayer(some, l);
  });
  return all;
}

// Of today's layers, of older ones, and of the first format, whose padding joins the convolution behind it.
TEST(Trained, UsedModelsAreThoseThatAreReadAtOnce) {
  const std::string folder = ::testing::TempDir(), path = folder + "crema_used.caffemodel";
  for (const char* text :
       {"name: 'n' force_backward: true state { phase: TRAIN } layer { name: 'a' blobs { shape { dim: 2 } data: 1 "
        "data: "
        "2 } blobs { data: 5 } } layer { name: 'b' } layer { name: 'c' blobs { num: 1 channels: 1 height: 1 width: 1 "
        "double_data: 3 } }",
        "name: 'v1' input: 'x' layers { name: 'a' type: INNER_PRODUCT bottom: 'x' top: 'a' blobs { data: 1 } blobs { "
        "data: 2 "
        "} blobs_lr: 1 blobs_lr: 2 } layers { name: 'b' type: RELU bottom: 'a' top: 'a' }",
        "name: 'v0' input: 'x' layers { layer { name: 'p' type: 'padding' pad: 2 } bottom: 'x' top: 'p' } layers { "
        "layer { "
        "name: 'c' type: 'conv' num_output: 1 kernelsize: 5 blobs { data: 7 } } bottom: 'p' top: 'c' }"}) {
    const auto model = parseText<caffe::NetParameter>(text, "text");
    writeBinary(path, model);
    const std::string whole = readFile(path);
    EXPECT_EQ(whole, model.SerializeAsString());
    caffe::NetParameter want;
    *want.mutable_layer() = readTrained(path).net.layer();
    ASSERT_GT(want.layer_size(), 0);
    const auto layers = used(path);
    EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(layers, want)) << toText(layers);
    useTrained(path, [&](const Trained& some) { EXPECT_EQ(some.file != nullptr, model.name() != "v0"); });
    for (size_t size = 0; size < whole.size(); ++size) {  // cut anywhere: as it is read at once
      writeFileAtomically(path, std::string_view(whole).substr(0, size));
      const std::string error = messageOf([&] { readTrained(path); });
      EXPECT_EQ(messageOf([&] { used(path); }), error) << size;
    }
  }
  EXPECT_EQ(messageOf([&] { used(folder + "none"); }), messageOf([&] { readTrained(folder + "none"); }));
  std::remove(path.c_str());
}

// The encodings that protobuf allows for one field, and what of them stays where it is.
TEST(Trained, ValuesStayInTheFileWhereTheyAreOneRunOfPackedFloats) {
  const auto floats = [](std::initializer_list<float> all) {
    return std::string(reinterpret_cast<const char*>(all.begin()), all.size() * sizeof(float));
  };
  const auto field = [](int number, const std::string& bytes) {
    return std::string{static_cast<char>(number << 3 | 2), static_cast<char>(bytes.size())} + bytes;
  };
  const std::string one = field(5, floats({1, 2})), shape = field(7, std::string("\x08\x02")), unknown = field(15, "x");
  const std::string alone = std::string("\x2d") + floats({3});  // data: 3, not packed
  const std::string wide = field(8, std::string(8, '\0')), diff = field(6, floats({8, 9}));
  const std::pair<std::string, bool> blobs[] = {{one, true},        {shape + one + diff + unknown, true},
                                                {one + one, false}, {one + alone, false},
                                                {alone, false},     {one + wide, false},
                                                {shape, false},     {field(5, "abcde"), false},
                                                {"", false},        {field(5, ""), false}};
  for (const auto& [blob, stays] : blobs) {
    const std::string layer = field(1, "name") + field(7, one) + field(7, blob) + field(5, "loss"),
                      bytes = field(1, "net") + std::string("\xa2\x06") + static_cast<char>(layer.size()) + layer;
    caffe::NetParameter net;
    const bool good = net.ParseFromString(bytes);
    const auto stored = storedModel(bytes);
    ASSERT_EQ(stored.has_value(), good);
    if (!good) continue;
    caffe::LayerParameter want = net.layer(0), have = stored->net.layer(0);
    EXPECT_EQ(!stored->values[0][1].empty(), stays) << want.ShortDebugString();
    if (stays) want.mutable_blobs(1)->clear_diff();
    for (int b = 0; b < 2; ++b) {
      const std::string_view bytesOf = stored->values[0][static_cast<size_t>(b)];
      std::vector<float> values(bytesOf.size() / sizeof(float));
      std::copy(bytesOf.begin(), bytesOf.end(), reinterpret_cast<char*>(values.data()));
      have.mutable_blobs(b)->mutable_data()->Add(values.begin(), values.end());
    }
    EXPECT_EQ(have.SerializeAsString(), want.SerializeAsString());
  }
}

TEST(Trained, AFileThatBecomesShorterMeanwhileIsSaid) {
  const std::string path = ::testing::TempDir() + "crema_shorter.caffemodel";
  caffe::NetParameter net;
  net.add_layer()->add_blobs()->mutable_data()->Resize(100'000, 1.f);
  writeBinary(path, net);
  const std::string said = messageOf([&] {
    useTrained(path, [&](const Trained& some) {
      std::filesystem::resize_file(path, 5000);
      std::vector<float> values(100'000);
      some.copyValues(0, 0, values.data());
    });
  });
  EXPECT_NE(said.find("cannot read 400000 bytes of " + path + ": it has become shorter meanwhile"), std::string::npos)
      << said;
  std::remove(path.c_str());
}

}  // namespace
}  // namespace crema::model
