// JPEGs and PNGs made here with the libraries' encoders, whole and damaged. Against OpenCV: image_test.cc.
#include <gtest/gtest.h>
#include <png.h>
#include <sys/resource.h>
#include <zlib.h>

#include <cstdio>
#include <cstring>

#include <jpeglib.h>

#include "base/random.h"
#include "data/decode.h"

namespace crema::data {
namespace {

Image smooth(int channels, int height, int width) {
  Image i{channels, height, width, {}};
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      for (int c = 0; c < channels; ++c) i.bytes.push_back(static_cast<unsigned char>(40 * c + 2 * x + 3 * y));
  return i;
}

struct JpegOptions {
  bool progressive = false, restarts = false, optimised = false;
  int chroma = 1;  // 2: one sample for 2 x 2 pixels
  bool arithmetic = false;
};
std::string jpeg(const Image& i, const JpegOptions& o) {
  jpeg_compress_struct info{};
  jpeg_error_mgr errors;
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &bytes, &size);
  info.image_width = static_cast<unsigned>(i.width), info.image_height = static_cast<unsigned>(i.height);
  info.input_components = i.channels, info.in_color_space = i.channels == 1 ? JCS_GRAYSCALE : JCS_EXT_BGR;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, 100, TRUE);
  info.comp_info[0].h_samp_factor = info.comp_info[0].v_samp_factor = o.chroma;
  info.optimize_coding = o.optimised, info.arith_code = o.arithmetic;
  if (o.restarts) info.restart_interval = 3;
  if (o.progressive) jpeg_simple_progression(&info);
  jpeg_start_compress(&info, TRUE);
  for (int y = 0; y < i.height; ++y) {
    auto* row = const_cast<unsigned char*>(i.bytes.data()) + y * i.width * i.channels;
    jpeg_write_scanlines(&info, &row, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  std::string out(reinterpret_cast<char*>(bytes), size);
  std::free(bytes);
  return out;
}

std::string png(const Image& i, bool interlaced) {
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(png);
  std::string out;
  png_set_write_fn(
      png, &out,
      [](png_structp p, png_bytep from, size_t n) {
        static_cast<std::string*>(png_get_io_ptr(p))->append(reinterpret_cast<char*>(from), n);
      },
      nullptr);
  const int types[] = {0, PNG_COLOR_TYPE_GRAY, 0, PNG_COLOR_TYPE_RGB, PNG_COLOR_TYPE_RGB_ALPHA};
  png_set_IHDR(png, info, static_cast<unsigned>(i.width), static_cast<unsigned>(i.height), 8, types[i.channels],
               interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
               PNG_FILTER_TYPE_DEFAULT);
  png_write_info(png, info);
  if (i.channels > 1) png_set_bgr(png);
  std::vector<png_bytep> rows;
  for (int y = 0; y < i.height; ++y) rows.push_back(const_cast<png_bytep>(i.bytes.data()) + y * i.width * i.channels);
  png_write_image(png, rows.data());
  png_write_end(png, info);
  png_destroy_write_struct(&png, &info);
  return out;
}

std::vector<JpegOptions> jpegKinds() {
  return {{},
          {true},
          {false, true},
          {false, false, true},
          {false, false, false, 2},
          {true, false, false, 2},
          {false, false, false, 1, true}};
}
std::vector<std::string> samplesOfAllKinds() {
  std::vector<std::string> all;
  for (int channels : {1, 3, 4})
    for (bool interlaced : {false, true}) all.push_back(png(smooth(channels, 19, 27), interlaced));
  for (int channels : {1, 3})
    for (const JpegOptions& o : jpegKinds()) all.push_back(jpeg(smooth(channels, 35, 43), o));
  return all;
}

std::string whyNot(const std::string& bytes) {
  Image out;
  std::string why;
  return decodeImage(bytes, ColourMode::kAsIs, &out, &why) ? "" : why;
}
std::vector<unsigned char> pixels(const std::string& bytes, ColourMode colour = ColourMode::kAsIs) {
  Image out;
  std::string why;
  EXPECT_TRUE(decodeImage(bytes, colour, &out, &why)) << why;
  return out.bytes;
}

TEST(Decode, PngsComeBackAsTheyWereWritten) {
  for (bool interlaced : {false, true}) {
    for (int channels : {1, 3, 4}) {
      const Image i = smooth(channels, 19, 27);
      EXPECT_EQ(pixels(png(i, interlaced)), i.bytes);
    }
    const Image grey = smooth(1, 19, 27), alpha = smooth(4, 19, 27);
    std::vector<unsigned char> repeated, opaque;
    for (unsigned char v : grey.bytes) repeated.insert(repeated.end(), 3, v);
    for (size_t p = 0; p < alpha.bytes.size(); ++p)
      if (p % 4 < 3) opaque.push_back(alpha.bytes[p]);
    EXPECT_EQ(pixels(png(grey, interlaced), ColourMode::kColour), repeated);
    EXPECT_EQ(pixels(png(alpha, interlaced), ColourMode::kColour), opaque);
  }
}

TEST(Decode, JpegsOfTheBestQualityAreClose) {
  for (int channels : {1, 3}) {
    Image i = smooth(channels, 35, 43);
    for (auto& b : i.bytes) b = static_cast<unsigned char>(b / 2 + 30);
    for (const JpegOptions& o : jpegKinds()) {
      const auto out = pixels(jpeg(i, o));
      ASSERT_EQ(out.size(), i.bytes.size());
      int64_t apart = 0;
      for (size_t p = 0; p < out.size(); ++p) apart += std::abs(out[p] - i.bytes[p]);
      // The mean error of the whole picture, as its values wrap at 256 and chroma shared by 2 x 2 pixels blurs such
      // edges.
      EXPECT_LT(static_cast<double>(apart) / static_cast<double>(out.size()), o.chroma == 1 ? 0.7 : 6) << channels;
    }
    // The kinds of entropy coding hold the same coefficients.
    for (size_t k : {1, 2, 3, 6}) EXPECT_EQ(pixels(jpeg(i, jpegKinds()[k])), pixels(jpeg(i, {})));
    EXPECT_EQ(pixels(jpeg(i, jpegKinds()[5])), pixels(jpeg(i, jpegKinds()[4])));
  }
}

// A file cut anywhere has an error or all its pixels; cut in the middle it has the error that says so.
TEST(Decode, APartIsRefusedOrIsWhole) {
  for (const std::string& whole : samplesOfAllKinds()) {
    const auto want = pixels(whole);
    size_t readable = 0;
    for (size_t n = 0; n < whole.size(); ++n) {
      Image out;
      std::string why;
      // A copy of exactly n bytes: AddressSanitizer sees a step beyond.
      const std::vector<char> part(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(n));
      if (!decodeImage({part.data(), n}, ColourMode::kAsIs, &out, &why)) {
        ASSERT_FALSE(why.empty());
        continue;
      }
      ++readable;
      ASSERT_EQ(out.bytes, want) << n << " of " << whole.size();
    }
    EXPECT_LT(readable, 30u);  // the end marker, the last chunk, some padding
    EXPECT_NE(whyNot(whole.substr(0, whole.size() / 2)).find("data end early"), std::string::npos)
        << whyNot(whole.substr(0, whole.size() / 2));
  }
}

TEST(Decode, SaysWhatIsWrong) {
  EXPECT_EQ(whyNot(""), "has no bytes");
  EXPECT_EQ(whyNot("GIF89a......"), "is neither JPEG nor PNG");
  const std::string good = jpeg(smooth(3, 35, 43), {}), flat = png(smooth(1, 19, 27), false);
  EXPECT_EQ(pixels(good.substr(0, good.size() - 2)), pixels(good));                               // no end marker
  EXPECT_EQ(pixels(good.substr(0, good.size() - 2) + "extra" + "\xff\xd9" + "x"), pixels(good));  // behind the data
  EXPECT_EQ(pixels(flat.substr(0, flat.size() - 12)), pixels(flat));                              // no IEND
  std::string bad = flat;
  bad[flat.find("IDAT") + 20] ^= 1;
  EXPECT_NE(whyNot(bad).find("is a PNG that cannot be read: "), std::string::npos) << whyNot(bad);
  // A marker in the middle of the data: the rest of the picture is missing.
  std::string hole = good;
  hole.replace(good.size() / 2, 2, "\xff\xd9");
  EXPECT_NE(whyNot(hole).find("data end early"), std::string::npos) << whyNot(hole);
}

void setSize(std::string* jpegFile, unsigned height, unsigned width) {
  const size_t at = jpegFile->find("\xff\xc0") + 5;
  for (size_t k : {0, 1}) {
    (*jpegFile)[at + k] = static_cast<char>(height >> (8 - 8 * k));
    (*jpegFile)[at + 2 + k] = static_cast<char>(width >> (8 - 8 * k));
  }
}
// Corrects checksums after a change, so that the damaged chunk is decoded.
void repairChecksums(std::string* pngFile) {
  for (size_t at = 8; at + 12 <= pngFile->size();) {
    const auto byte = [&](size_t k) { return static_cast<size_t>(static_cast<unsigned char>((*pngFile)[at + k])); };
    const size_t n = byte(0) << 24 | byte(1) << 16 | byte(2) << 8 | byte(3);
    if (n > pngFile->size() - at - 12) return;
    const auto sum =
        crc32(0, reinterpret_cast<const unsigned char*>(pngFile->data()) + at + 4, static_cast<unsigned>(n + 4));
    for (size_t k = 0; k < 4; ++k) (*pngFile)[at + 8 + n + k] = static_cast<char>(sum >> (24 - 8 * k));
    at += n + 12;
  }
}

TEST(Decode, RefusesSizesBeyondReason) {
  std::string bomb = jpeg(smooth(3, 35, 43), {});
  setSize(&bomb, 60000, 65000);
  EXPECT_NE(whyNot(bomb).find("of 65000x60000 pixels; at most 2^28"), std::string::npos) << whyNot(bomb);
  setSize(&bomb, 8000, 8000);
  EXPECT_NE(whyNot(bomb).find("announces 8000x8000 pixels, which its"), std::string::npos) << whyNot(bomb);
  std::string flat = png(smooth(1, 19, 27), false);
  flat.replace(16, 8, std::string("\0\0\x40\0\0\0\x40\0", 8));  // 16384 x 16384 = 2^28
  repairChecksums(&flat);
  EXPECT_NE(whyNot(flat).find("announces 16384x16384 pixels, which its"), std::string::npos) << whyNot(flat);
  flat[19] = 1;
  repairChecksums(&flat);
  EXPECT_NE(whyNot(flat).find("of 16385x16384 pixels; at most 2^28"), std::string::npos) << whyNot(flat);
  // The limit does not refuse a valid picture of one grey, deflated 1:900.
  const Image even{1, 3000, 3000, std::vector<unsigned char>(9000000, 128)};
  EXPECT_EQ(pixels(png(even, false)), even.bytes);
  EXPECT_EQ(pixels(jpeg(even, {true, false, true})), even.bytes);
}

// One damage: bits, a stretch of bytes, an inserted or doubled stretch, a cut.
void damage(std::string* s, const RandomStream& r, uint64_t* next) {
  const auto draw = [&](uint64_t limit) { return static_cast<size_t>(r.below((*next)++, limit)); };
  for (size_t times = 1 + draw(4); times > 0 && !s->empty(); --times) {
    const size_t at = draw(s->size()), n = draw(40);
    switch (draw(6)) {
      case 0:
      case 1:
        (*s)[at] = static_cast<char>((*s)[at] ^ (1 << draw(8)));
        break;
      case 2:
        for (size_t k = at; k < std::min(s->size(), at + n); ++k) (*s)[k] = static_cast<char>(draw(256));
        break;
      case 3:
        s->insert(at, std::string(n, static_cast<char>(draw(256))));
        break;
      case 4:
        s->insert(draw(s->size()), s->substr(at, n * 4));
        break;
      default:
        s->erase(at, draw(8) ? n : s->size());
    }
  }
}

TEST(Decode, DamagedFilesDoNoHarm) {
  constexpr int kFiles = 20000;
  const auto seeds = samplesOfAllKinds();
  RandomKey key;
  key.name = hashName("damage");
  const RandomStream r(key);
  uint64_t next = 0;
  rusage before{}, after{};
  getrusage(RUSAGE_SELF, &before);
  int readable = 0;
  for (int done = 0; done < kFiles; ++done) {
    std::string file = seeds[static_cast<size_t>(done) % seeds.size()];
    damage(&file, r, &next);
    if (file.find("PNG") == 1 && done % 4) repairChecksums(&file);
    // Exactly as long as the file, for AddressSanitizer.
    const std::vector<char> bytes(file.begin(), file.end());
    Image out;
    std::string why;
    const auto colour = static_cast<ColourMode>(done % 3);
    if (decodeImage({bytes.data(), bytes.size()}, colour, &out, &why)) {
      ++readable;
      ASSERT_EQ(static_cast<int64_t>(out.bytes.size()), out.view().count());
      ASSERT_LE(out.bytes.size(), 5000 * bytes.size());
    } else {
      ASSERT_EQ(why.substr(0, 4) == "is a" || why.substr(0, 4) == "is n" || why.substr(0, 4) == "has ", true) << why;
    }
  }
  getrusage(RUSAGE_SELF, &after);
  std::printf("%d damaged files, %d readable, %ld KB more at the peak\n", kFiles, readable,
              after.ru_maxrss - before.ru_maxrss);
  EXPECT_GT(readable, 1000);  // some damage is where no pixel depends on it
  EXPECT_LT(readable, kFiles * 3 / 4);
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 600 * 1024);  // AddressSanitizer keeps 256 MB of freed memory
}

}  // namespace
}  // namespace crema::data
