// Window files, random draws, geometry and pixels, each against an independent computation.
#include "data/window_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "data/batch_feed.h"
#include "data/encode.h"
#include "model/proto_io.h"
#include "support/message_of.h"
#include "support/shared_data.h"

namespace crema::data {
namespace {

using test::messageOf;

struct Windows {
  test::TemporaryFolder folder;
  WindowOptions options;
  Windows() {
    options.param.set_root_folder(folder.path() + "/");
    options.transform.set_crop_size(8);
  }
  std::shared_ptr<WindowFile> file(const std::string& text) {
    writeFileAtomically(folder.file("windows"), text);
    options.param.set_source(folder.file("windows"));
    return std::make_shared<WindowFile>(options);
  }
  std::string refused(const std::string& text) {
    return messageOf([&] { file(text); });
  }
};

ImageWindow windowOf(const Record& r) {
  ImageWindow w{};
  std::memcpy(&w, r.value.data(), sizeof w);
  return w;
}

// Windows exactly at a threshold, between the two, and without overlap. Numbers of images need not count up; a path has
// a line of its own and may hold blanks.
TEST(WindowFile, SortsByOverlap) {
  Windows w;
  w.options.param.set_fg_threshold(0.5), w.options.param.set_bg_threshold(0.25);
  const auto file = w.file(
      "# 0\nan image.png\n3\n30\n40\n1\n2 0.75 3 3 4 4\n"
      "# 7\r\nb.png\r\n3\r\n30\r\n40\r\n4\r\n5 0.5 1 2 3 4\r\n6 0.25 0 0 1 1\r\n7 0.2499 5 6 7 8\r\n8 0 9 9 9 "
      "9\r\n");
  ASSERT_EQ(file->size(), 4);
  EXPECT_EQ(file->foreground(), 2);
  const std::vector<std::vector<int>> want = {
      {0, 2, 3, 3, 4, 4}, {1, 5, 1, 2, 3, 4}, {1, 0, 5, 6, 7, 8}, {1, 0, 9, 9, 9, 9}};
  for (int64_t i = 0; i < 4; ++i) {
    const ImageWindow x = windowOf(file->read(i));
    EXPECT_EQ((std::vector<int>{x.image, x.label, x.x1, x.y1, x.x2, x.y2}), want[static_cast<size_t>(i)]);
    EXPECT_EQ(file->read(i).key, x.image ? "b.png" : "an image.png");
  }
  EXPECT_EQ(file->fileOf(file->read(0)), w.folder.file("an image.png"));
}

TEST(WindowFile, DamageGetsASentence) {
  Windows w;
  const std::string head = "# 0\na.png\n3\n30\n40\n", path = w.folder.file("windows");
  EXPECT_NE(w.refused("").find("Window file is empty"), std::string::npos);
  EXPECT_NE(w.refused("0 a.png").find("'0' stands where '#'"), std::string::npos);
  EXPECT_NE(w.refused(head + "2\n1 0.9 0 0 1 1\n")
                .find("ends where a window's class is expected, in the part of image 'a.png'"),
            std::string::npos);
  EXPECT_NE(w.refused(head + "1\n1 0.9 0 0 1 1\n1 0.9 0 0 1 1\n").find("is the count of windows right?"),
            std::string::npos);
  EXPECT_NE(w.refused(head + "1\n1 0.9 0.5 0 1 1\n").find("'0.5' stands where a window's x1"), std::string::npos);
  EXPECT_NE(w.refused(head + "1\n0 0.9 0 0 1 1\n").find("a foreground window has class 0; classes start at 1"),
            std::string::npos);
  EXPECT_NE(w.refused(head + "1\n1 0.9 4 0 1 1\n").find("x1 <= x2"), std::string::npos);
  w.options.cache = true;
  EXPECT_NE(w.refused(head + "1\n1 0.9 0 0 1 1\n").find("a.png"), std::string::npos)
      << "cached images are read at once";
}

// int(7 * 0.4) = 2 of 7 are foreground, at the end; over many batches all windows are equally frequent; draws depend on
// step and rank, not on earlier ones.
TEST(WindowFile, DrawsBackgroundFirstAndEveryWindow) {
  Windows w;
  std::string text = "# 0\na.png\n3\n30\n40\n9\n";
  for (int i = 0; i < 9; ++i) text += fmt::format("{} {} 0 0 {} 1\n", i + 1, i < 4 ? 0.9 : 0.1, i);
  const auto file = w.file(text);
  ASSERT_EQ(file->foreground(), 4);
  ASSERT_EQ(file->size(), 9);
  std::map<int64_t, int> seen;
  std::set<std::vector<int64_t>> batches;
  for (uint64_t step = 0; step < 2000; ++step) {
    std::vector<int64_t> batch;
    for (int item = 0; item < 7; ++item) {
      batch.push_back(chooseWindow(*file, 7, 0.4f, {1, step, static_cast<uint32_t>(step % 2), "w"}, item));
      EXPECT_EQ(batch.back() < 4, item >= 5);
      ++seen[batch.back()];
    }
    batches.insert(batch);
  }
  // Binomial: foreground 4000 draws over 4 (mean 1000, deviation 27), background 10000 over 5 (2000, 40); 5 deviations.
  for (const auto& [record, count] : seen)
    EXPECT_NEAR(count, record < 4 ? 1000 : 2000, record < 4 ? 137 : 200) << record;
  EXPECT_EQ(seen.size(), 9u);
  EXPECT_GT(batches.size(), 1900u);
  EXPECT_EQ(windowOf(file->read(6)).x2, 6);
  EXPECT_EQ(windowOf(file->read(6)).label, 0);
  EXPECT_EQ(windowOf(file->read(2)).label, 3);
}

double halfAway(double v) { return v < 0 ? -std::floor(-v + 0.5) : std::floor(v + 0.5); }

// The region in double, from its definition; numbers that lie within 5e-3 of a tie are left out.
struct Region {
  double x1, y1, x2, y2;
  bool tie = false;
  Region(const ImageWindow& w, int crop, int pad, bool square) {
    const double s = crop / static_cast<double>(crop - 2 * pad), width = w.x2 - w.x1 + 1, height = w.y2 - w.y1 + 1;
    const double hx = (square ? std::max(width, height) : width) / 2 * s,
                 hy = (square ? std::max(width, height) : height) / 2 * s;
    const double mx = w.x1 + width / 2, my = w.y1 + height / 2;
    x1 = whole(mx - hx), x2 = whole(mx + hx), y1 = whole(my - hy), y2 = whole(my + hy);
  }
  double whole(double v) {
    tie = tie || std::fabs(v - std::floor(v) - 0.5) < 5e-3;
    return halfAway(v);
  }
};

TEST(Windows, GeometryAgainstDouble) {
  int compared = 0, clipped = 0;
  const RandomStream r{RandomKey{}};
  for (uint64_t n = 0; n < 4000; ++n) {
    const auto draw = [&](uint64_t k, int limit) {
      return static_cast<int>(r.below(16 * n + k, static_cast<uint64_t>(limit)));
    };
    const int height = 20 + draw(0, 300), width = 20 + draw(1, 300), crop = 20 + draw(2, 210),
              pad = draw(3, crop / 2 - 2);
    const bool square = draw(4, 2), mirror = draw(5, 2);
    ImageWindow w{0, 1, draw(6, width), draw(7, height), 0, 0};
    w.x2 = w.x1 + draw(8, width - w.x1), w.y2 = w.y1 + draw(9, height - w.y1);
    if (pad == 0 && !square) continue;
    Region region(w, crop, pad, square);
    const double scaleX = crop / (region.x2 - region.x1 + 1), scaleY = crop / (region.y2 - region.y1 + 1);
    const double left = std::max(0., -region.x1), top = std::max(0., -region.y1);
    const double right = std::max(0., region.x2 - width + 1), bottom = std::max(0., region.y2 - height + 1);
    const double x1 = region.x1 + left, x2 = region.x2 - right, y1 = region.y1 + top, y2 = region.y2 - bottom;
    const double marginX = region.whole((mirror ? right : left) * scaleX), marginY = region.whole(top * scaleY);
    const double across = std::min(region.whole((x2 - x1 + 1) * scaleX), crop - marginX);
    const double down = std::min(region.whole((y2 - y1 + 1) * scaleY), crop - marginY);
    if (region.tie) continue;
    const WindowPlace p = placeWindow(w, height, width, crop, pad, square, mirror);
    ASSERT_EQ(std::vector<double>({x1, y1, x2, y2, across, down, marginX, marginY}),
              std::vector<double>({double(p.x1), double(p.y1), double(p.x2), double(p.y2), double(p.width),
                                   double(p.height), double(p.left), double(p.top)}))
        << n;
    ++compared, clipped += left + right + top + bottom > 0;
  }
  EXPECT_GT(compared, 2500);
  EXPECT_GT(clipped, 500);
}

TEST(Windows, OutsideTheImageIsNamed) {
  EXPECT_NE(messageOf([] {
              placeWindow({0, 1, 5, 5, 30, 10}, 20, 30, 8, 0, false, false);
            }).find("the window 5 5 30 10 lies outside its image of 20x30"),
            std::string::npos);
  EXPECT_NE(messageOf([] {
              placeWindow({0, 1, 90, 5, 95, 10}, 20, 30, 8, 1, false, false);
            }).find("lies outside"),
            std::string::npos);
  EXPECT_EQ(messageOf([] { placeWindow({0, 1, 5, 5, 29, 19}, 20, 30, 8, 0, false, false); }), "no error");
}

// A picture of slow gradients, so that one grey level bounds the error of rounded weights; the sample in double from
// its definition: bilinear at the centres of pixels, margins 0, mirrored or not, minus the centre of the mean, times
// scale.
TEST(Windows, PixelsAgainstDouble) {
  Windows w;
  constexpr int kHeight = 40, kWidth = 50, kCrop = 24, kMean = 30;
  Image picture{3, kHeight, kWidth, {}};
  for (int y = 0; y < kHeight; ++y)
    for (int x = 0; x < kWidth; ++x)
      for (int c = 0; c < 3; ++c) picture.bytes.push_back(static_cast<unsigned char>(20 + 2 * x + 2 * y + 20 * c));
  writeFileAtomically(w.folder.file("a.png"), encodePng(picture));
  caffe::BlobProto mean;
  mean.set_num(1), mean.set_channels(3), mean.set_height(kMean), mean.set_width(kMean + 2);
  for (int i = 0; i < 3 * kMean * (kMean + 2); ++i) mean.add_data(static_cast<float>(i % 97));
  model::writeBinary(w.folder.file("mean"), mean);
  w.options.transform.set_crop_size(kCrop), w.options.transform.set_mirror(true);
  w.options.transform.set_mean_file(w.folder.file("mean"));
  w.options.param.set_context_pad(3), w.options.scale = 0.25f;
  const auto file = w.file("# 0\na.png\n3\n40\n50\n3\n1 0.9 2 1 20 30\n2 0.9 30 20 49 39\n3 0.9 12 12 30 25\n");
  const auto samples = windowSamples(w.options, file);
  std::vector<float> data(3 * kCrop * kCrop), label(1);
  int mirrored = 0, margins = 0;
  for (int item = 0; item < 24; ++item) {
    const Record record = file->read(item % 3);
    const SampleRandom random{5, 3, 0, "w"};
    samples->make(record, random, item, {data.data(), label.data()});
    EXPECT_EQ(label[0], item % 3 + 1);
    const bool mirror = random.stream(RandomPurpose::kMirror, "").block(static_cast<uint64_t>(item))[0] & 1;
    mirrored += mirror;
    const WindowPlace p = placeWindow(windowOf(record), kHeight, kWidth, kCrop, 3, false, mirror);
    for (int c = 0; c < 3; ++c)
      for (int y = 0; y < kCrop; ++y)
        for (int x = 0; x < kCrop; ++x) {
          const float got = data[static_cast<size_t>((c * kCrop + y) * kCrop + x)];
          const int iy = y - p.top, ix = mirror ? p.left + p.width - 1 - x : x - p.left;
          if (iy < 0 || iy >= p.height || ix < 0 || ix >= p.width) {
            ASSERT_EQ(got, 0) << "a margin";
            ++margins;
            continue;
          }
          const double sy = std::clamp((iy + 0.5) * (p.y2 - p.y1 + 1) / p.height - 0.5, 0., double(p.y2 - p.y1));
          const double sx = std::clamp((ix + 0.5) * (p.x2 - p.x1 + 1) / p.width - 0.5, 0., double(p.x2 - p.x1));
          // Linear, so that interpolation is exact.
          const double pixel = 20 + 2 * (p.x1 + sx) + 2 * (p.y1 + sy) + 20 * c;
          const int off = (kMean + 2 - kCrop) / 2, at = (c * kMean + y + off) * (kMean + 2) + x + off;
          ASSERT_NEAR(got, (pixel - at % 97) * 0.25, 0.25 + 1e-6) << item << ": " << c << " " << y << " " << x;
        }
  }
  EXPECT_TRUE(mirrored > 4 && mirrored < 20) << mirrored;
  EXPECT_GT(margins, 1000);
}

TEST(Windows, CachedImagesGiveTheSamePixels) {
  Windows w;
  w.options.param.set_root_folder(CREMA_SOURCE_DIR "/tests/goldens/images/");
  w.options.param.set_source(CREMA_SOURCE_DIR "/tests/goldens/image_layers/tall.windows");
  std::vector<std::vector<float>> all;
  for (bool cache : {false, true}) {
    w.options.cache = cache;
    const auto file = std::make_shared<WindowFile>(w.options);
    const auto samples = windowSamples(w.options, file);
    for (int64_t i = 0; i < file->size(); ++i) {
      all.emplace_back(3 * 64 + 1);
      samples->make(file->read(i), {}, 0, {all.back().data(), &all.back().back()});
    }
  }
  ASSERT_GE(all.size(), 4u);
  for (size_t i = 0; i < all.size() / 2; ++i) EXPECT_EQ(all[i], all[i + all.size() / 2]);
}

TEST(Windows, AMeanThatIsTooSmallIsRefused) {
  Windows w;
  caffe::BlobProto mean;
  mean.set_channels(3), mean.set_height(7), mean.set_width(9);
  for (int i = 0; i < 3 * 63; ++i) mean.add_data(1);
  model::writeBinary(w.folder.file("mean"), mean);
  const auto file = w.file("# 0\na.png\n3\n40\n50\n1\n1 0.9 2 1 20 30\n");
  w.options.transform.set_mean_file(w.folder.file("mean"));
  EXPECT_NE(messageOf([&] { windowSamples(w.options, file); }).find("is 3x7x9, which holds no centre of 3x8x8"),
            std::string::npos);
}

}  // namespace
}  // namespace crema::data
