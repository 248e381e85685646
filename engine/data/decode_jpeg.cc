#include <fmt/core.h>

#include <csetjmp>
#include <cstdio>  // jpeglib.h needs FILE
#include <cstring>

#include <jpeglib.h>

#include <jerror.h>

#include "data/decode_parts.h"

namespace crema::data {
namespace {

constexpr int kMostScans = 100;

struct JpegReader {
  jpeg_decompress_struct info{};
  jpeg_error_mgr errors{};
  jpeg_progress_mgr progress{};
  std::jmp_buf out;
  bool endMatters = true;  // false where missing data at the end is found by other means
  char why[JMSG_LENGTH_MAX + 64] = "";
  ~JpegReader() { jpeg_destroy_decompress(&info); }
};

[[noreturn]] void leave(j_common_ptr info) {
  auto* r = static_cast<JpegReader*>(info->client_data);
  char text[JMSG_LENGTH_MAX];
  info->err->format_message(info, text);
  const bool end = info->err->msg_code == JWRN_JPEG_EOF || info->err->msg_code == JWRN_HIT_MARKER;
  if (end)
    std::snprintf(r->why, sizeof r->why, "is a JPEG whose data end early");
  else
    std::snprintf(r->why, sizeof r->why, "is a JPEG that cannot be read: %s", text);
  std::longjmp(r->out, 1);
}

// libjpeg's warnings that affect no pixel: bytes between the data and the next marker, odd Adobe and JFIF headers, a
// sequential scan with strange parameters, more data than pixels.
void warned(j_common_ptr info, int level) {
  if (level >= 0) return;
  switch (info->err->msg_code) {
    case JWRN_EXTRANEOUS_DATA:
    case JWRN_ADOBE_XFORM:
    case JWRN_JFIF_MAJOR:
    case JWRN_NOT_SEQUENTIAL:
    case JWRN_TOO_MUCH_DATA:
      return;
    case JWRN_JPEG_EOF:  // libjpeg goes on with an end marker; missing pixels are JWRN_HIT_MARKER then
      if (!static_cast<JpegReader*>(info->client_data)->endMatters) return;
  }
  leave(info);
}

void limitScans(j_common_ptr info) {
  auto* r = static_cast<JpegReader*>(info->client_data);
  if (r->info.input_scan_number <= kMostScans) return;
  std::snprintf(r->why, sizeof r->why, "is a JPEG of more than %d scans", kMostScans);
  std::longjmp(r->out, 1);
}

bool readHeader(JpegReader* r, const unsigned char* bytes, size_t size) {
  if (setjmp(r->out)) return false;
  r->info.err = jpeg_std_error(&r->errors);
  r->info.client_data = r;
  r->errors.error_exit = leave;
  r->errors.emit_message = warned;
  r->errors.output_message = [](j_common_ptr) {};
  jpeg_create_decompress(&r->info);
  r->info.progress = &r->progress;
  r->progress.progress_monitor = limitScans;
  jpeg_mem_src(&r->info, bytes, static_cast<unsigned long>(size));
  jpeg_read_header(&r->info, TRUE);
  r->endMatters = r->info.arith_code || jpeg_has_multiple_scans(&r->info);
  return true;
}

bool readPixels(JpegReader* r, unsigned char* out, size_t row) {
  if (setjmp(r->out)) return false;
  jpeg_start_decompress(&r->info);
  while (r->info.output_scanline < r->info.output_height) {
    JSAMPROW at = out + r->info.output_scanline * row;
    jpeg_read_scanlines(&r->info, &at, 1);
  }
  return true;
}

// Arithmetic coding can use less than a bit per block, so its limit is 64 times larger.
bool fits(const jpeg_decompress_struct& info, size_t size, std::string* why) {
  const int64_t pixels = static_cast<int64_t>(info.image_width) * info.image_height;
  if (pixels > kMostPixels)
    *why = fmt::format("is a JPEG of {}x{} pixels; at most 2^28 are read", info.image_width, info.image_height);
  int64_t blocks = 0;
  for (int c = 0; c < info.num_components; ++c)
    blocks += static_cast<int64_t>(info.comp_info[c].width_in_blocks) * info.comp_info[c].height_in_blocks;
  if (why->empty() && blocks > static_cast<int64_t>(size) * 8 * (info.arith_code ? 64 : 1))
    *why = fmt::format("is a JPEG that announces {}x{} pixels, which its {} bytes cannot hold", info.image_width,
                       info.image_height, size);
  return why->empty();
}

// OpenCV's conversion, K being what is left of white: B, G, R from Y, M, C; grey in fixed point of 14 bits.
void fromCmyk(const std::vector<unsigned char>& cmyk, bool grey, unsigned char* out) {
  for (size_t i = 0; i < cmyk.size(); i += 4) {
    const int k = cmyk[i + 3];
    const auto ink = [&](size_t at) { return k - ((255 - cmyk[i + at]) * k >> 8); };
    const int r = ink(0), g = ink(1), b = ink(2);
    if (grey) {
      *out++ = static_cast<unsigned char>((b * 1868 + g * 9617 + r * 4899 + 8192) >> 14);
    } else {
      *out++ = static_cast<unsigned char>(b), *out++ = static_cast<unsigned char>(g);
      *out++ = static_cast<unsigned char>(r);
    }
  }
}

}  // namespace

bool decodeJpeg(std::string_view bytes, ColourMode colour, Image* out, std::string* why) {
  JpegReader r;
  why->clear();
  if (!readHeader(&r, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size())) return *why = r.why, false;
  if (!fits(r.info, bytes.size(), why)) return false;
  const bool grey = colour == ColourMode::kGrey || (colour == ColourMode::kAsIs && r.info.num_components == 1);
  const bool cmyk = r.info.num_components == 4;
  r.info.out_color_space = cmyk ? JCS_CMYK : grey ? JCS_GRAYSCALE : JCS_EXT_BGR;
  out->channels = grey ? 1 : 3;
  out->height = static_cast<int>(r.info.image_height), out->width = static_cast<int>(r.info.image_width);
  const size_t width = r.info.image_width, channels = static_cast<size_t>(out->channels);
  out->bytes.resize(r.info.image_height * width * channels);
  std::vector<unsigned char> inks(cmyk ? r.info.image_height * width * 4 : 0);
  if (!readPixels(&r, cmyk ? inks.data() : out->bytes.data(), width * (cmyk ? 4 : channels)))
    return *why = r.why, false;
  if (cmyk) fromCmyk(inks, grey, out->bytes.data());
  return true;
}

}  // namespace crema::data
