#include "data/encode.h"

#include <algorithm>
#include <csetjmp>
#include <cstdio>  // jpeglib.h needs FILE
#include <cstdlib>

#include <jpeglib.h>
#include <png.h>
#include <zlib.h>

#include "base/error.h"

namespace crema::data {
namespace {

// The libraries report errors by calls that must not return. Functions that longjmp() leaves have no C++ objects; see
// decode_parts.h.
struct JpegWriter {
  jpeg_compress_struct info{};
  jpeg_error_mgr errors{};
  std::jmp_buf out;
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  char why[JMSG_LENGTH_MAX] = "";
  ~JpegWriter() {
    jpeg_destroy_compress(&info);
    std::free(bytes);
  }
};

bool write(JpegWriter* w, const Image& image) {
  if (setjmp(w->out)) return false;
  w->info.err = jpeg_std_error(&w->errors);
  w->info.client_data = w;
  w->errors.error_exit = [](j_common_ptr info) {
    auto* writer = static_cast<JpegWriter*>(info->client_data);
    info->err->format_message(info, writer->why);
    std::longjmp(writer->out, 1);
  };
  w->errors.output_message = [](j_common_ptr) {};
  jpeg_create_compress(&w->info);
  jpeg_mem_dest(&w->info, &w->bytes, &w->size);
  w->info.image_width = static_cast<JDIMENSION>(image.width);
  w->info.image_height = static_cast<JDIMENSION>(image.height);
  w->info.input_components = image.channels;
  w->info.in_color_space = image.channels == 1 ? JCS_GRAYSCALE : JCS_EXT_BGR;
  jpeg_set_defaults(&w->info);
  jpeg_set_quality(&w->info, 95, TRUE);
  jpeg_start_compress(&w->info, TRUE);
  const size_t row = static_cast<size_t>(image.width) * static_cast<size_t>(image.channels);
  while (w->info.next_scanline < w->info.image_height) {
    auto* at = const_cast<unsigned char*>(image.bytes.data()) + w->info.next_scanline * row;
    jpeg_write_scanlines(&w->info, &at, 1);
  }
  jpeg_finish_compress(&w->info);
  return true;
}

struct PngWriter {
  png_structp png = nullptr;
  png_infop info = nullptr;
  std::string* bytes = nullptr;
  std::jmp_buf out;
  char why[256] = "";
  ~PngWriter() { png_destroy_write_struct(&png, &info); }
};

bool write(PngWriter* w, const Image& image) {
  if (setjmp(w->out)) return false;
  w->png = png_create_write_struct(
      PNG_LIBPNG_VER_STRING, w,
      [](png_structp png, png_const_charp text) {
        auto* writer = static_cast<PngWriter*>(png_get_error_ptr(png));
        std::snprintf(writer->why, sizeof writer->why, "%s", text);
        std::longjmp(writer->out, 1);
      },
      [](png_structp, png_const_charp) {});
  if (w->png) w->info = png_create_info_struct(w->png);
  if (!w->info) return false;
  png_set_write_fn(
      w->png, w->bytes,
      [](png_structp png, png_bytep from, size_t n) {
        static_cast<std::string*>(png_get_io_ptr(png))->append(reinterpret_cast<char*>(from), n);
      },
      nullptr);
  png_set_filter(w->png, PNG_FILTER_TYPE_BASE, PNG_FILTER_SUB);
  png_set_compression_level(w->png, Z_BEST_SPEED);
  png_set_compression_strategy(w->png, Z_RLE);
  const int type = image.channels == 1   ? PNG_COLOR_TYPE_GRAY
                   : image.channels == 3 ? PNG_COLOR_TYPE_RGB
                                         : PNG_COLOR_TYPE_RGBA;
  png_set_IHDR(w->png, w->info, static_cast<png_uint_32>(image.width), static_cast<png_uint_32>(image.height), 8, type,
               PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_write_info(w->png, w->info);
  png_set_bgr(w->png);
  const size_t row = static_cast<size_t>(image.width) * static_cast<size_t>(image.channels);
  for (int y = 0; y < image.height; ++y) png_write_row(w->png, image.bytes.data() + static_cast<size_t>(y) * row);
  png_write_end(w->png, w->info);
  return true;
}

void check(const Image& image, const char* format, std::initializer_list<int> channels) {
  const auto values = static_cast<int64_t>(image.bytes.size());
  const bool known = std::find(channels.begin(), channels.end(), image.channels) != channels.end();
  if (!known || values == 0 || values != image.view().count())
    internal("an image of {}x{}x{} and {} values is to become a {}", image.channels, image.height, image.width, values,
             format);
}

}  // namespace

std::string encodeJpeg(const Image& image) {
  check(image, "JPEG", {1, 3});
  JpegWriter w;
  if (!write(&w, image))
    invalid("an image of {}x{} pixels cannot become a JPEG: {}; say -encode_type png", image.height, image.width,
            w.why);
  return {reinterpret_cast<char*>(w.bytes), w.size};
}

std::string encodePng(const Image& image) {
  check(image, "PNG", {1, 3, 4});
  std::string bytes;
  PngWriter w;
  w.bytes = &bytes;
  if (!write(&w, image))
    invalid("an image of {}x{} pixels cannot become a PNG: {}", image.height, image.width,
            *w.why ? w.why : "there is not enough memory");
  return bytes;
}

Encoding parseEncoding(const std::string& name) {
  std::string low = name;
  std::transform(low.begin(), low.end(), low.begin(), [](unsigned char c) { return std::tolower(c); });
  if (low == "jpg" || low == "jpeg") return Encoding::kJpeg;
  if (low == "png") return Encoding::kPng;
  invalid("images can be encoded as png or jpg, not as '{}'; say -encode_type png or -encode_type jpg", name);
}

std::string encodeImage(const Image& image, Encoding as) {
  return as == Encoding::kPng ? encodePng(image) : encodeJpeg(image);
}

}  // namespace crema::data
