#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "base/file.h"
#include "data/batch_feed.h"
#include "data/decode.h"
#include "data/lmdb_writer.h"
#include "data/resize.h"
#include "data/source.h"
#include "data/transformer.h"
#include "model/proto_io.h"
#include "support/message_of.h"
#include "support/shared_data.h"

namespace crema::data {
namespace {

using test::messageOf;

std::string golden(const std::string& name) {
  return readFile(std::string(CREMA_SOURCE_DIR) + "/tests/goldens/images/" + name);
}

Image decoded(const std::string& bytes, const std::string& mode) {
  Image out;
  std::string why;
  const ColourMode colour = mode == "grey"     ? ColourMode::kGrey
                            : mode == "colour" ? ColourMode::kColour
                                               : ColourMode::kAsIs;
  EXPECT_TRUE(decodeImage(bytes, colour, &out, &why)) << why;
  EXPECT_EQ(static_cast<int64_t>(out.bytes.size()), out.view().count());
  return out;
}

std::string crc(const Image& i) {
  return fmt::format("{:08x}", crc32(0, i.bytes.data(), static_cast<unsigned>(i.bytes.size())));
}
std::string samples(const Image& i) {
  std::string text;
  for (size_t k = 0; k < 16; ++k) text += fmt::format("{}{}", k ? "," : "", i.bytes[k * (i.bytes.size() - 1) / 15]);
  return text;
}

// The goldens of this file: OpenCV 4.10.0, see tests/goldens/images.py.
TEST(Decode, EqualsOpenCv) {
  std::istringstream lines(golden("decode.txt"));
  std::string name, mode, sum, some;
  int channels, height, width, count = 0;
  for (; lines >> name >> mode >> channels >> height >> width >> sum >> some; ++count) {
    const Image image = decoded(golden(name), mode);
    EXPECT_EQ((std::vector<int>{image.channels, image.height, image.width}),
              (std::vector<int>{channels, height, width}))
        << name << " " << mode;
    EXPECT_EQ(samples(image), some) << name << " " << mode;
    EXPECT_EQ(crc(image), sum) << name << " " << mode;
  }
  EXPECT_EQ(count, 3 * 50);
}

TEST(Resize, EqualsOpenCv) {
  std::istringstream lines(golden("resize.txt"));
  std::string name, sum, some;
  int height, width, count = 0;
  for (; lines >> name >> height >> width >> sum >> some; ++count) {
    const Image image = resizeBilinear(decoded(golden(name), "unchanged").view(), height, width);
    EXPECT_EQ(samples(image), some) << name << " " << height << "x" << width;
    EXPECT_EQ(crc(image), sum) << name << " " << height << "x" << width;
  }
  EXPECT_EQ(count, 27);
}

// Sums over blocks of 64 x 64, channel by channel: to show where two pictures differ.
std::string blockSums(const Image& i) {
  std::string text;
  for (int c = 0; c < i.channels; ++c)
    for (int y = 0; y < i.height; y += 64)
      for (int x = 0; x < i.width; x += 64) {
        int64_t sum = 0;
        for (int v = y; v < std::min(y + 64, i.height); ++v)
          for (int u = x; u < std::min(x + 64, i.width); ++u)
            sum += i.bytes[static_cast<size_t>((v * i.width + u) * i.channels + c)];
        text += fmt::format("{}{}", text.empty() ? "" : ",", sum);
      }
  return text;
}

TEST(Decode, PhotographsEqualOpenCv) {
  std::istringstream lines(golden("photos.txt"));
  std::string name, what, sum, sums;
  int channels, height, width, count = 0;
  while (lines >> name >> what >> channels >> height >> width >> sum >> sums) {
    const bool own = name.starts_with("examples/");
    const auto path = own ? CREMA_SOURCE_DIR + ("/" + name) : test::sharedData(name);
    if (!path) continue;
    Image image = decoded(readFile(*path), what == "resized" ? "colour" : what);
    if (what == "resized") image = resizeBilinear(image.view(), height, width);
    EXPECT_EQ(blockSums(image), sums) << name << " " << what;
    EXPECT_EQ(crc(image), sum) << name << " " << what << " " << height;
    ++count;
  }
  // Four drawings of our own; with the shared data five photographs as well.
  EXPECT_TRUE(count == 20 || count == 45) << count;
}

Image noise(int channels, int height, int width, uint64_t seed) {
  RandomKey key;
  key.seed = seed;
  const RandomStream r(key);
  Image i{channels, height, width, {}};
  for (int64_t k = 0; k < i.view().count(); ++k)
    i.bytes.push_back(static_cast<unsigned char>(r.below(static_cast<uint64_t>(k), 256)));
  return i;
}
std::vector<unsigned char> planar(const Image& i) {
  std::vector<unsigned char> out;
  for (int c = 0; c < i.channels; ++c)
    for (size_t p = static_cast<size_t>(c); p < i.bytes.size(); p += static_cast<size_t>(i.channels))
      out.push_back(i.bytes[p]);
  return out;
}

// The formula without roundings, from which the result may differ by one level, as weights have 11 bits.
double exactly(const Image& i, int c, double y, double x) {
  const auto at = [&](double v, double u) {
    const auto row = static_cast<int64_t>(std::clamp(v, 0.0, i.height - 1.0)),
               column = static_cast<int64_t>(std::clamp(u, 0.0, i.width - 1.0));
    return static_cast<double>(i.bytes[static_cast<size_t>((row * i.width + column) * i.channels + c)]);
  };
  const double v = std::floor(y), u = std::floor(x), fy = y - v, fx = x - u;
  return (1 - fy) * ((1 - fx) * at(v, u) + fx * at(v, u + 1)) + fy * ((1 - fx) * at(v + 1, u) + fx * at(v + 1, u + 1));
}

TEST(Resize, FollowsTheFormulaInBothLayouts) {
  const RandomStream r{RandomKey{}};
  double worst = 0;
  for (uint64_t k = 0; k < 60; ++k) {
    const auto draw = [&](uint64_t which, uint64_t most) {
      return 1 + static_cast<int>(r.below(16 * k + which, most));
    };
    const Image i = noise(draw(0, 4), draw(1, 40), draw(2, 40), k);
    const int height = draw(3, 90), width = draw(4, 90);
    const Image out = resizeBilinear(i.view(), height, width);
    const auto planes = planar(i);
    ASSERT_EQ(resizeBilinear({i.channels, i.height, i.width, planes.data()}, height, width).bytes, out.bytes);
    size_t at = 0;
    for (int y = 0; y < height; ++y)
      for (int x = 0; x < width; ++x)
        for (int c = 0; c < i.channels; ++c)
          worst = std::max(worst, std::abs(out.bytes[at++] - exactly(i, c, (y + 0.5) * i.height / height - 0.5,
                                                                     (x + 0.5) * i.width / width - 0.5)));
  }
  EXPECT_LT(worst, 1.0);
  const Image same = noise(3, 9, 11, 1);
  EXPECT_EQ(resizeBilinear(same.view(), 9, 11).bytes, same.bytes);
  const float f = 0;
  EXPECT_NE(messageOf([&] { resizeBilinear({1, 1, 1, nullptr, &f}, 2, 2); }).find("8-bit"), std::string::npos);
  EXPECT_NE(messageOf([&] { resizeBilinear(same.view(), 0, 5); }).find("cannot become 0x5"), std::string::npos);
}

// Caffe's formula, one value at a time, from bytes in planes.
std::vector<float> transformedSlowly(const Image& i, int crop, bool mirrored, float scale,
                                     const std::vector<float>& values, const std::vector<float>& file) {
  const auto planes = planar(i);
  const int h = crop ? crop : i.height, w = crop ? crop : i.width, oy = (i.height - h) / 2, ox = (i.width - w) / 2;
  std::vector<float> out(static_cast<size_t>(i.channels * h * w));
  for (int c = 0; c < i.channels; ++c)
    for (int y = 0; y < h; ++y)
      for (int x = 0; x < w; ++x) {
        const auto from = static_cast<size_t>((c * i.height + y + oy) * i.width + x + ox);
        const float mean = !file.empty()    ? file[from]
                           : values.empty() ? 0.f
                                            : values[values.size() == 1 ? 0 : static_cast<size_t>(c)];
        const volatile float less = static_cast<float>(planes[from]) - mean;  // rounded before the product
        out[static_cast<size_t>((c * h + y) * w + (mirrored ? w - 1 - x : x))] = less * scale;
      }
  return out;
}

void transformAllWays(const Image& i, const caffe::TransformationParameter& param, const std::vector<float>& values,
                      const std::vector<float>& file) {
  const Transformer t(param, caffe::TEST, "");
  const auto planes = planar(i);
  const std::vector<float> hwc(i.bytes.begin(), i.bytes.end()), chw(planes.begin(), planes.end());
  const RandomStream draws{RandomKey{}};
  for (int item = 0; item < 4; ++item) {
    const bool mirrored = param.mirror() && (draws.block(static_cast<uint64_t>(item))[0] & 1);
    const auto want = transformedSlowly(i, static_cast<int>(param.crop_size()), mirrored, param.scale(), values, file);
    for (const ImageView& v : {i.view(), ImageView{i.channels, i.height, i.width, planes.data()},
                               ImageView{i.channels, i.height, i.width, nullptr, hwc.data(), true},
                               ImageView{i.channels, i.height, i.width, nullptr, chw.data()}}) {
      std::vector<float> out(static_cast<size_t>(t.outputShape(v).count()));
      t.apply<float>(v, draws, draws, item, out.data());
      ASSERT_EQ(out, want) << param.ShortDebugString();
      std::vector<double> wide(out.size());
      t.apply<double>(v, draws, draws, item, wide.data());
      for (size_t k = 0; k < out.size(); ++k) ASSERT_NEAR(wide[k], out[k], 1e-4);
    }
  }
}

TEST(Transformer, EveryLayoutGivesCaffesBits) {
  test::TemporaryFolder folder;
  for (int channels : {1, 2, 3, 4})
    for (int crop : {0, 7})
      for (bool mirror : {false, true})
        for (int mean = 0; mean < 4; ++mean) {
          // One width exceeds the buffer of a row.
          const int width = crop ? 37 : 1030;
          const Image i = noise(channels, 11, width, static_cast<uint64_t>(channels));
          caffe::TransformationParameter param;
          param.set_scale(0.017f), param.set_mirror(mirror);
          if (crop) param.set_crop_size(static_cast<unsigned>(crop));
          std::vector<float> values, file;
          if (mean == 1 || mean == 2)
            for (int c = 0; c < (mean == 1 ? 1 : channels); ++c)
              values.push_back(104.00699f + 7.1f * static_cast<float>(c));
          for (float v : values) param.add_mean_value(v);
          if (mean == 3) {
            caffe::BlobProto blob;
            blob.set_num(1), blob.set_channels(channels), blob.set_height(11), blob.set_width(width);
            for (unsigned char b : noise(channels, 11, width, 99).bytes)
              file.push_back(0.37f * b), blob.add_data(0.37f * b);
            model::writeBinary(folder.file("mean"), blob);
            param.set_mean_file(folder.file("mean"));
          }
          transformAllWays(i, param, values, file);
        }
}

TEST(Transformer, ACropBeyondAnIntIsTooLarge) {
  caffe::TransformationParameter param;
  param.set_crop_size(4000000000u);
  const Image i = noise(1, 3, 3, 1);
  EXPECT_NE(messageOf([&] { Transformer(param, caffe::TEST, "").outputShape(i.view()); }).find("crop_size 4000000000"),
            std::string::npos);
}

TEST(BatchFeed, EncodedRecordsBecomeThePixelsOfOpenCv) {
  test::TemporaryFolder folder;
  const auto write = [&](const std::string& name, std::vector<std::string> records) {
    LmdbWriter writer(folder.file(name));
    for (size_t i = 0; i < records.size(); ++i) {
      caffe::Datum d;
      d.set_encoded(true), d.set_data(records[i]), d.set_label(static_cast<int>(i));
      writer.put(fmt::format("{:08d}", i), d.SerializeAsString());
    }
    writer.finish();
    return openSource(caffe::DataParameter::LMDB, folder.file(name));
  };
  const std::string one = golden("colour_420.jpg"), two = golden("turned.jpg"), grey = golden("grey.jpg");
  const auto makerOf = [](std::shared_ptr<const RecordSource> source, const char* param) {
    ImageOptions image;
    image.transform = model::parseText<caffe::TransformationParameter>(param, "param");
    BatchMaker maker;
    maker.source = source;
    maker.samples = datumSamples(image, true, *source);
    maker.options.batch = 2;
    return maker;
  };
  const auto check = [&](const std::string& name, const std::vector<std::string>& records, const char* param,
                         const std::string& mode) {
    BatchFeed feed(makerOf(write(name, records), param));
    const Batch& b = feed.next(0, 0);
    std::vector<float> want;
    for (const std::string& r : records)
      for (unsigned char v : planar(decoded(r, mode))) want.push_back(static_cast<float>(v));
    EXPECT_EQ(b.tops[0], want) << param;
    EXPECT_EQ(b.tops[1], (std::vector<float>{0, 1}));
  };
  check("asis", {one, two}, "", "unchanged");
  check("grey", {one, grey}, "force_gray: true", "grey");
  check("colour", {grey, two}, "force_color: true", "colour");
  BatchFeed feed(makerOf(write("bad", {one, two, one, two.substr(0, 900)}), ""));
  feed.next(0, 0);
  const std::string message = messageOf([&] { feed.next(0, 1); });
  EXPECT_NE(message.find("is a JPEG whose data end early"), std::string::npos) << message;
  EXPECT_NE(message.find("record '00000003' (number 3)"), std::string::npos) << message;
  LmdbWriter writer(folder.file("raw"));  // keys are bytes of any kind
  for (const auto& [key, bytes] : {std::pair{"0", one}, std::pair{"1\x1b[2J\xff", two.substr(0, 900)}}) {
    caffe::Datum d;
    d.set_encoded(true), d.set_data(bytes);
    writer.put(key, d.SerializeAsString());
  }
  writer.finish();
  BatchFeed raw(makerOf(openSource(caffe::DataParameter::LMDB, folder.file("raw")), ""));
  const std::string escaped = messageOf([&] { raw.next(0, 0); });
  EXPECT_NE(escaped.find("record '1\\x1b[2J\\xff' (number 1)"), std::string::npos) << escaped;
  BatchFeed mixed(makerOf(write("mixed", {one, grey}), ""));
  EXPECT_NE(messageOf([&] { mixed.next(0, 0); }).find("where 3x"), std::string::npos);
}

}  // namespace
}  // namespace crema::data
