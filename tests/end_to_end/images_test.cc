// A net trained on encoded pictures is the net trained on their pixels, bit for bit, through Data and through
// MemoryData.
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <png.h>

#include <cstdlib>

#include "base/file.h"
#include "base/random.h"
#include "caffe.pb.h"
#include "data/lmdb_writer.h"
#include "support/shared_data.h"

namespace crema {
namespace {

constexpr int kHeight = 10, kWidth = 12, kRecords = 40;

std::string png(const std::string& bgr) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION, image.width = kWidth, image.height = kHeight, image.format = PNG_FORMAT_BGR;
  png_alloc_size_t size = 0;
  EXPECT_TRUE(png_image_write_to_memory(&image, nullptr, &size, 0, bgr.data(), 0, nullptr));
  std::string out(size, '\0');
  EXPECT_TRUE(png_image_write_to_memory(&image, out.data(), &size, 0, bgr.data(), 0, nullptr));
  return out;
}

// Pictures whose class is the channel that is brighter; `spoilt`: the record whose image is cut, or -1.
void writeRecords(const std::string& path, bool encoded, int spoilt) {
  data::LmdbWriter writer(path);
  const RandomStream noise{RandomKey{}};
  for (int i = 0; i < kRecords; ++i) {
    caffe::Datum d;
    d.set_label(i % 3);
    std::string bgr, planes(3 * kHeight * kWidth, '\0');
    for (int p = 0; p < kHeight * kWidth; ++p)
      for (int c = 0; c < 3; ++c) {
        const auto at = static_cast<uint64_t>((i * kHeight * kWidth + p) * 3 + c);
        bgr.push_back(static_cast<char>(noise.below(at, 100) + (c == i % 3 ? 120 : 0)));
        planes[static_cast<size_t>(c * kHeight * kWidth + p)] = bgr.back();
      }
    if (encoded)
      d.set_encoded(true), d.set_data(i == spoilt ? png(bgr).substr(0, 100) : png(bgr));
    else
      d.set_channels(3), d.set_height(kHeight), d.set_width(kWidth), d.set_data(planes);
    writer.put(fmt::format("{:08d}", i), d.SerializeAsString());
  }
  writer.finish();
}

// Returns the exit status; writes folder/model and folder/log.
int train(const std::string& folder, bool memory) {
  const std::string source = memory
                                 ? "memory_data_param { source: 'db' batch_size: 8 channels: 3 height: 10 width: 12 }"
                                 : "data_param { source: 'db' batch_size: 8 backend: LMDB }";
  writeFileAtomically(
      folder + "/net.prototxt",
      fmt::format(
          "name: 'pictures'\n"
          "layer {{ name: 'data' type: '{}' top: 'data' top: 'label' {} transform_param {{ scale: 0.01 "
          "crop_size: 8 mirror: true mean_value: 104 mean_value: 117 mean_value: 123 }} }}\n"
          "layer {{ name: 'ip' type: 'InnerProduct' bottom: 'data' top: 'ip' inner_product_param {{ num_output: "
          "3 weight_filler {{ type: 'xavier' }} }} }}\n"
          "layer {{ name: 'loss' type: 'SoftmaxWithLoss' bottom: 'ip' bottom: 'label' top: 'loss' }}\n",
          memory ? "MemoryData" : "Data", source));
  writeFileAtomically(folder + "/solver.prototxt",
                      "net: 'net.prototxt' base_lr: 0.1 lr_policy: 'fixed' max_iter: 12 display: 4 random_seed: 3 "
                      "solver_mode: CPU snapshot_prefix: 'snap'\n");
  return std::system(
      fmt::format("cd {} && timeout 60 {} train -solver solver.prototxt -model model > log 2>&1", folder, CREMA_BINARY)
          .c_str());
}

TEST(Images, EncodedRecordsTrainAsTheirPixelsDo) {
  for (bool memory : {false, true}) {
    test::TemporaryFolder raw, encoded;
    writeRecords(raw.file("db"), false, -1);
    writeRecords(encoded.file("db"), true, -1);
    ASSERT_EQ(train(raw.path(), memory), 0) << readFile(raw.file("log"));
    ASSERT_EQ(train(encoded.path(), memory), 0) << readFile(encoded.file("log"));
    EXPECT_TRUE(readFile(raw.file("model")) == readFile(encoded.file("model"))) << "memory: " << memory;
  }
}

TEST(Images, ACutPictureIsNamed) {
  test::TemporaryFolder folder;
  writeRecords(folder.file("db"), true, 29);
  EXPECT_NE(train(folder.path(), false), 0);
  const std::string log = readFile(folder.file("log"));
  EXPECT_NE(log.find("is a PNG whose data end early"), std::string::npos) << log;
  EXPECT_NE(log.find("record '00000029' (number 29)"), std::string::npos) << log;
  EXPECT_FALSE(fileExists(folder.file("model")));
}

}  // namespace
}  // namespace crema
