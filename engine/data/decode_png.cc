#include <fmt/core.h>
#include <png.h>

#include <csetjmp>
#include <cstdio>
#include <cstring>

#include "data/decode_parts.h"

namespace crema::data {
namespace {

struct PngReader {
  png_structp png = nullptr;
  png_infop info = nullptr;
  const char* at = nullptr;
  size_t left = 0;
  std::jmp_buf out;
  char why[256] = "";
  ~PngReader() { png_destroy_read_struct(&png, &info, nullptr); }
};

[[noreturn]] void leave(png_structp png, png_const_charp text) {
  auto* r = static_cast<PngReader*>(png_get_error_ptr(png));
  if (!*r->why) std::snprintf(r->why, sizeof r->why, "is a PNG that cannot be read: %s", text);
  std::longjmp(r->out, 1);
}

void feed(png_structp png, png_bytep to, size_t n) {
  auto* r = static_cast<PngReader*>(png_get_io_ptr(png));
  if (n > r->left) {
    std::snprintf(r->why, sizeof r->why, "is a PNG whose data end early");
    leave(png, "");
  }
  std::memcpy(to, r->at, n);
  r->at += n, r->left -= n;
}

bool readHeader(PngReader* r) {
  if (setjmp(r->out)) return false;
  r->png = png_create_read_struct(PNG_LIBPNG_VER_STRING, r, leave, [](png_structp, png_const_charp) {});
  if (r->png) r->info = png_create_info_struct(r->png);
  if (!r->info) return false;
  png_set_read_fn(r->png, r, feed);
  png_set_user_limits(r->png, kMostPixels, kMostPixels);
  // Colour profiles and texts do not affect pixels: they are not unpacked, and damage in them is ignored.
  static const png_byte kSkipped[] = "iCCP\0tEXt\0zTXt\0iTXt\0eXIf\0sPLT";
  png_set_keep_unknown_chunks(r->png, PNG_HANDLE_CHUNK_NEVER, kSkipped, 6);
  png_read_info(r->png, r->info);
  return true;
}

struct Target {
  int channels;
  size_t row;
};

bool prepare(PngReader* r, ColourMode colour, Target* t) {
  if (setjmp(r->out)) return false;
  const int type = png_get_color_type(r->png, r->info);
  const bool colours = (type & PNG_COLOR_MASK_COLOR) != 0;
  const bool alpha = (type & PNG_COLOR_MASK_ALPHA) != 0 || (colours && png_get_valid(r->png, r->info, PNG_INFO_tRNS));
  const bool keep = colour == ColourMode::kAsIs;
  t->channels = keep ? (alpha ? 4 : colours ? 3 : 1) : colour == ColourMode::kGrey ? 1 : 3;
  if (png_get_bit_depth(r->png, r->info) == 16) png_set_strip_16(r->png);
  if (type == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(r->png);
  if (!colours) png_set_expand_gray_1_2_4_to_8(r->png);
  if (t->channels == 4 && !(type & PNG_COLOR_MASK_ALPHA)) png_set_tRNS_to_alpha(r->png);
  if (t->channels < 4) png_set_strip_alpha(r->png);
  if (t->channels > 1 && colours) png_set_bgr(r->png);
  if (t->channels > 1 && !colours) png_set_gray_to_rgb(r->png);
  if (t->channels == 1 && colours) png_set_rgb_to_gray(r->png, 1, 0.299, 0.587);
  png_set_interlace_handling(r->png);
  png_read_update_info(r->png, r->info);
  t->row = png_get_rowbytes(r->png, r->info);
  return true;
}

bool readPixels(PngReader* r, unsigned char* out, size_t row, unsigned height, bool interlaced) {
  if (setjmp(r->out)) return false;
  for (int pass = interlaced ? 7 : 1; pass > 0; --pass)
    for (unsigned y = 0; y < height; ++y) png_read_row(r->png, out + y * row, nullptr);
  return true;
}

// To be called before transformations change rowbytes.
bool fits(const PngReader& r, size_t size, std::string* why) {
  const uint64_t width = png_get_image_width(r.png, r.info), height = png_get_image_height(r.png, r.info);
  if (width * height > static_cast<uint64_t>(kMostPixels))
    *why = fmt::format("is a PNG of {}x{} pixels; at most 2^28 are read", width, height);
  else if (png_get_rowbytes(r.png, r.info) * height / 1032 > size)
    *why = fmt::format("is a PNG that announces {}x{} pixels, which its {} bytes cannot hold", width, height, size);
  return why->empty();
}

}  // namespace

bool decodePng(std::string_view bytes, ColourMode colour, Image* out, std::string* why) {
  PngReader r;
  Target t{};
  why->clear();
  r.at = bytes.data(), r.left = bytes.size();
  if (!readHeader(&r)) return *why = *r.why ? r.why : "needs more memory than there is", false;
  if (!fits(r, bytes.size(), why)) return false;
  const bool interlaced = png_get_interlace_type(r.png, r.info) != PNG_INTERLACE_NONE;
  if (!prepare(&r, colour, &t)) return *why = r.why, false;
  out->channels = t.channels;
  out->height = static_cast<int>(png_get_image_height(r.png, r.info));
  out->width = static_cast<int>(png_get_image_width(r.png, r.info));
  if (t.row != static_cast<size_t>(out->width) * static_cast<size_t>(t.channels))
    return *why = fmt::format("is a PNG of a kind that is not read ({} bytes a row)", t.row), false;
  out->bytes.resize(t.row * static_cast<size_t>(out->height));
  if (!readPixels(&r, out->bytes.data(), t.row, static_cast<unsigned>(out->height), interlaced))
    return *why = r.why, false;
  return true;
}

}  // namespace crema::data
