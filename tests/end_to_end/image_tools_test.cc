// Caffe's image tools, as a user calls them, and what they leave in databases.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "base/file.h"
#include "base/random.h"
#include "caffe.pb.h"
#include "data/image_file.h"
#include "data/source.h"
#include "model/proto_io.h"
#include "support/shared_data.h"

namespace crema {
namespace {

const std::string kImages = CREMA_SOURCE_DIR "/tests/goldens/images/";

// Returns the exit code; the output is in folder/log.
int run(const std::string& folder, const std::string& command) {
  const int status =
      std::system(fmt::format("cd {} && timeout 60 {} {} > log 2>&1", folder, CREMA_BINARY, command).c_str());
  return WEXITSTATUS(status);
}

struct Written {
  std::vector<std::string> keys;
  std::vector<caffe::Datum> records;
  explicit Written(const std::string& path) {
    const auto source = data::openSource(caffe::DataParameter::LMDB, path);
    for (int64_t i = 0; i < source->size(); ++i) {
      const data::Record r = source->read(i);
      keys.emplace_back(r.key);
      records.push_back(parseBinaryDatum(r.value));
    }
  }
  static caffe::Datum parseBinaryDatum(std::string_view bytes) {
    caffe::Datum d;
    EXPECT_TRUE(d.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())));
    return d;
  }
};

// Every record and mean, byte for byte, of what BVLC Caffe's tools make of the same list.
TEST(ConvertImageset, WritesTheBytesThatCaffesToolWrites) {
  const std::string folder = CREMA_SOURCE_DIR "/tests/goldens/image_tools/";
  test::TemporaryFolder out;
  std::string got;
  const auto line = [&](const std::string& mode, std::string_view key, std::string_view bytes) {
    got += fmt::format("{} {} {} {:016x}\n", mode, key, bytes.size(), hashName(bytes));
  };
  std::istringstream modes(readFile(folder + "modes.txt"));
  for (std::string mode; std::getline(modes, mode);) {
    const std::string name = mode.substr(0, mode.find('|')), flags = mode.substr(mode.find('|') + 1);
    ASSERT_EQ(run(out.path(), fmt::format("convert_imageset {} {} {}images.list {}", flags, kImages, folder, name)), 0)
        << readFile(out.file("log"));
    const auto source = data::openSource(caffe::DataParameter::LMDB, out.file(name));
    for (int64_t i = 0; i < source->size(); ++i) line(name, source->read(i).key, source->read(i).value);
    if (name != "resized" && name != "small") continue;
    ASSERT_EQ(run(out.path(), fmt::format("compute_image_mean {} mean", name)), 0);
    line(name, "mean", readFile(out.file("mean")));
  }
  EXPECT_EQ(got, readFile(folder + "caffe.txt"));
}

// Channel by channel, with a loop of its own.
void expectPixels(const caffe::Datum& d, const data::Image& image, int label) {
  EXPECT_EQ(d.label(), label);
  EXPECT_FALSE(d.encoded());
  ASSERT_EQ(d.channels(), image.channels);
  ASSERT_EQ(d.height(), image.height);
  ASSERT_EQ(d.width(), image.width);
  size_t at = 0;
  for (int c = 0; c < image.channels; ++c)
    for (int y = 0; y < image.height; ++y)
      for (int x = 0; x < image.width; ++x)
        ASSERT_EQ(static_cast<unsigned char>(d.data()[at++]),
                  image.bytes[static_cast<size_t>((y * image.width + x) * image.channels + c)]);
}

TEST(ConvertImageset, RecordsAreThePixelsInTheListsOrder) {
  test::TemporaryFolder folder;
  writeFileAtomically(folder.file("list"), "colour_444.jpg 3\n\nabsent.jpg 1\ntype2_8.png 300\ntype3_4.png 0\n");
  ASSERT_EQ(
      run(folder.path(), "convert_imageset -resize_height=14 -resize_width 17 -check_size " + kImages + " list db"), 0)
      << readFile(folder.file("log"));
  const Written db(folder.file("db"));
  // The number is that of the line, as in Caffe: what cannot be read leaves a gap.
  ASSERT_EQ(db.keys,
            (std::vector<std::string>{"00000000_colour_444.jpg", "00000003_type2_8.png", "00000004_type3_4.png"}));
  const std::vector<int> labels = {3, 300, 0};
  for (size_t i = 0; i < 3; ++i)
    expectPixels(db.records[i],
                 data::readImageFile(kImages + db.keys[i].substr(9), {data::ColourMode::kColour, 14, 17}), labels[i]);
  const std::string log = readFile(folder.file("log"));
  for (const char* line : {"] A total of 4 images.\n", "] Processed 3 files.\n",
                           "Could not open or find file " CREMA_SOURCE_DIR "/tests/goldens/images/absent.jpg"})
    EXPECT_NE(log.find(line), std::string::npos) << log;
}

TEST(ConvertImageset, GreyAndShuffled) {
  test::TemporaryFolder folder;
  std::string list;
  for (int i = 0; i < 40; ++i) list += fmt::format("{} {}\n", i % 2 ? "type2_8.png" : "type0_8.png", i);
  writeFileAtomically(folder.file("list"), list);
  ASSERT_EQ(run(folder.path(), "convert_imageset -gray -shuffle " + kImages + " list db"), 0)
      << readFile(folder.file("log"));
  const Written db(folder.file("db"));
  ASSERT_EQ(db.records.size(), 40u);
  std::vector<int> order, sorted;
  for (size_t i = 0; i < 40; ++i) {
    const int label = db.records[i].label();
    order.push_back(label);
    const std::string name = label % 2 ? "type2_8.png" : "type0_8.png";
    EXPECT_EQ(db.keys[i], fmt::format("{:08d}_{}", i, name));
    expectPixels(db.records[i], data::readImageFile(kImages + name, {data::ColourMode::kGrey}), label);
  }
  sorted = order;
  std::sort(sorted.begin(), sorted.end());
  EXPECT_NE(sorted, order);
  for (int i = 0; i < 40; ++i) EXPECT_EQ(sorted[static_cast<size_t>(i)], i);
}

TEST(ConvertImageset, EncodedRecords) {
  test::TemporaryFolder folder;
  writeFileAtomically(folder.file("list"), "colour_420.jpg 1\ntype2_8.png 2\n");
  ASSERT_EQ(run(folder.path(), "convert_imageset -encoded " + kImages + " list same"), 0);
  ASSERT_EQ(run(folder.path(), "convert_imageset -encode_type=png " + kImages + " list png"), 0);
  ASSERT_EQ(run(folder.path(), "convert_imageset -encoded -encode_type jpg -resize_height 30 -resize_width 40 " +
                                   kImages + " list jpg"),
            0);
  const Written same(folder.file("same")), png(folder.file("png")), jpg(folder.file("jpg"));
  for (size_t i = 0; i < 2; ++i) {
    const std::string file = kImages + same.keys[i].substr(9);
    EXPECT_EQ(same.records[i].data(), readFile(file)) << "its own bytes";
    EXPECT_TRUE(same.records[i].encoded() && png.records[i].encoded() && jpg.records[i].encoded());
    EXPECT_EQ(png.records[i].data() == readFile(file), i == 1);
    EXPECT_EQ(data::imageOfFile(png.records[i].data(), "png", {}).bytes, data::readImageFile(file, {}).bytes);
    const data::Image small = data::imageOfFile(jpg.records[i].data(), "jpg", {});
    EXPECT_EQ(jpg.records[i].data().substr(0, 3), "\xff\xd8\xff");
    EXPECT_EQ(small.height, 30);
    EXPECT_EQ(small.width, 40);
  }
}

TEST(ComputeImageMean, IsTheMeanPixelByPixel) {
  test::TemporaryFolder folder;
  writeFileAtomically(folder.file("list"), "colour_444.jpg 3\ncolour_420.jpg 0\ncolour_411_p.jpg 1\n");
  ASSERT_EQ(run(folder.path(), "convert_imageset " + kImages + " list raw"), 0);
  ASSERT_EQ(run(folder.path(), "convert_imageset -encoded -encode_type png " + kImages + " list encoded"), 0);
  ASSERT_EQ(run(folder.path(), "compute_image_mean encoded mean2"), 0);
  ASSERT_EQ(run(folder.path(), "compute_image_mean -backend lmdb raw mean"), 0);
  EXPECT_EQ(readFile(folder.file("mean")), readFile(folder.file("mean2")));
  const auto mean = model::readBinary<caffe::BlobProto>(folder.file("mean"));
  EXPECT_EQ(mean.num(), 1);
  ASSERT_EQ(mean.channels() * 10000 + mean.height() * 100 + mean.width(), 33753);
  const Written db(folder.file("raw"));
  double channels[3] = {0, 0, 0};
  for (int k = 0; k < 3 * 37 * 53; ++k) {
    double sum = 0;
    for (const auto& d : db.records) sum += static_cast<unsigned char>(d.data()[static_cast<size_t>(k)]);
    ASSERT_EQ(mean.data(k), static_cast<float>(sum / 3));
    channels[k / (37 * 53)] += sum / 3 / (37 * 53);
  }
  const std::string log = readFile(folder.file("log"));
  for (int c = 0; c < 3; ++c)
    EXPECT_NE(log.find(fmt::format("] mean_value channel [{}]: {:.5g}", c, channels[c])), std::string::npos) << log;
}

// Ten records in batches of four, three batches: the last one starts again, as Caffe's. The net doubles the pixels.
TEST(ExtractFeatures, FloatsOfEveryItemWrappingInTheLastBatch) {
  test::TemporaryFolder folder;
  std::string list;
  for (int i = 0; i < 10; ++i) list += fmt::format("{} {}\n", i % 3 ? "type2_8.png" : "colour_411.jpg", i);
  writeFileAtomically(folder.file("list"), list);
  ASSERT_EQ(run(folder.path(), "convert_imageset -resize_height 6 -resize_width 5 " + kImages + " list db"), 0);
  writeFileAtomically(
      folder.file("net"),
      "layer { name: 'data' type: 'Data' top: 'data' top: 'label' data_param { source: 'db' batch_size: 4 backend: "
      "LMDB } }\n"
      "layer { name: 'double' type: 'Scale' bottom: 'data' top: 'double' scale_param { axis: 0 num_axes: 0 } }\n"
      "layer { name: 'flat' type: 'Flatten' bottom: 'double' top: 'flat' }\n");
  caffe::NetParameter weights;
  auto* layer = weights.add_layer();
  layer->set_name("double"), layer->set_type("Scale");
  layer->add_blobs()->mutable_shape();
  layer->mutable_blobs(0)->add_data(2);
  model::writeBinary(folder.file("weights"), weights);
  ASSERT_EQ(run(folder.path(), "extract_features weights net double,flat one,two 3 lmdb CPU 0"), 0)
      << readFile(folder.file("log"));
  const Written db(folder.file("db")), one(folder.file("one")), two(folder.file("two"));
  ASSERT_EQ(one.keys.size(), 12u);
  for (size_t i = 0; i < 12; ++i) {
    EXPECT_EQ(one.keys[i], fmt::format("{:010d}", i));
    const caffe::Datum &from = db.records[i % 10], &a = one.records[i], &b = two.records[i];
    EXPECT_EQ(a.channels() * 100 + a.height() * 10 + a.width(), 365);
    EXPECT_EQ(b.channels() * 100 + b.height() * 10 + b.width(), 9011);
    ASSERT_EQ(a.float_data_size(), 90);
    for (int k = 0; k < 90; ++k)
      ASSERT_EQ(a.float_data(k), 2.f * static_cast<unsigned char>(from.data()[static_cast<size_t>(k)]));
    EXPECT_EQ(std::vector<float>(a.float_data().begin(), a.float_data().end()),
              std::vector<float>(b.float_data().begin(), b.float_data().end()));
  }
  EXPECT_NE(readFile(folder.file("log")).find("Extracted features of 12 query images for feature blob flat"),
            std::string::npos);
  EXPECT_EQ(run(folder.path(), "extract_features weights net double one 3 lmdb"), 1) << "the database is there";
  EXPECT_EQ(run(folder.path(), "extract_features weights net ghost three 3 lmdb"), 2);
  EXPECT_FALSE(fileExists(folder.file("three")));
}

}  // namespace
}  // namespace crema
