// Encoded images, read back; and a JPEG's quality and subsampling, from its own tables.
#include "data/encode.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "base/random.h"
#include "data/decode.h"
#include "support/message_of.h"

namespace crema::data {
namespace {

Image waves(int channels, int height, int width) {
  Image image{channels, height, width, {}};
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      for (int c = 0; c < channels; ++c)
        image.bytes.push_back(static_cast<unsigned char>(128 + 60 * std::sin(0.1 * x + c) + 50 * std::cos(0.08 * y)));
  return image;
}

TEST(Encode, PngKeepsEveryPixel) {
  const RandomStream r{RandomKey{}};
  for (int channels : {1, 3, 4}) {
    Image image = waves(channels, 19, 31), back;
    for (size_t i = 0; i < image.bytes.size(); i += 3) image.bytes[i] = static_cast<unsigned char>(r.below(i, 256));
    std::string why;
    ASSERT_TRUE(decodeImage(encodePng(image), ColourMode::kAsIs, &back, &why)) << why;
    EXPECT_EQ(back.channels, channels);
    EXPECT_EQ(back.height, 19);
    EXPECT_EQ(back.bytes, image.bytes);
  }
}

TEST(Encode, JpegStaysCloseOnSmoothPictures) {
  for (int channels : {1, 3}) {
    const Image image = waves(channels, 40, 51);
    Image back;
    std::string why;
    ASSERT_TRUE(decodeImage(encodeJpeg(image), ColourMode::kAsIs, &back, &why)) << why;
    ASSERT_EQ(back.bytes.size(), image.bytes.size());
    double worst = 0, sum = 0;
    for (size_t i = 0; i < image.bytes.size(); ++i) {
      const double d = std::abs(int(back.bytes[i]) - int(image.bytes[i]));
      worst = std::max(worst, d), sum += d;
    }
    EXPECT_LE(worst, channels == 1 ? 4 : 16);
    EXPECT_LE(sum / static_cast<double>(image.bytes.size()), 2);
  }
}

// Quality 95 divides Annex K's table by 10: (10 k + 50) / 100 of 16 11 12 14 12 10 16 14, in zigzag order. Colours are
// sampled 2 x 2.
TEST(Encode, JpegHasOpenCvsSettings) {
  const std::string bytes = encodeJpeg(waves(3, 16, 16));
  const size_t table = bytes.find(std::string("\xff\xdb\0\x43\0", 5)), frame = bytes.find("\xff\xc0");
  ASSERT_NE(table, std::string::npos);
  ASSERT_NE(frame, std::string::npos) << "baseline, not progressive";
  const int standard[] = {16, 11, 12, 14, 12, 10, 16, 14};
  for (size_t i = 0; i < 8; ++i) EXPECT_EQ(int(bytes[table + 5 + i]), (standard[i] * 10 + 50) / 100);
  EXPECT_EQ(int(bytes[frame + 11]), 0x22);
  EXPECT_EQ(int(bytes[frame + 14]), 0x11);
}

TEST(Encode, KindsByName) {
  EXPECT_EQ(parseEncoding("JPG"), Encoding::kJpeg);
  EXPECT_EQ(parseEncoding("jpeg"), Encoding::kJpeg);
  EXPECT_EQ(parseEncoding("png"), Encoding::kPng);
  EXPECT_NE(test::messageOf([] { parseEncoding("bmp"); }).find("not as 'bmp'"), std::string::npos);
}

}  // namespace
}  // namespace crema::data
