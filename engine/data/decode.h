// JPEG and PNG to 8-bit pixels, as OpenCV's imdecode gives them to Caffe.
//
// kColour: B, G, R; grey is repeated, alpha dropped, a palette looked up. kGrey: one channel; a JPEG gives its own
// luminance, a PNG 0.299 R + 0.587 G + 0.114 B in libpng's integers. kAsIs: 1 or 3 channels, 4 for a PNG with alpha
// (grey with alpha too, and a colour PNG with a transparent colour or palette entry). 16 bits keep their upper 8. CMYK
// JPEGs become (K - (255 - C) * K / 256) and so on, as there.
// Against newer OpenCV, with Caffe's: EXIF orientation is not applied; nets were trained on such pixels.
//
// An image with any pixel missing or damaged (a truncated JPEG, a bad Huffman code, a PNG chunk with a wrong checksum)
// is an error. OpenCV fills such a JPEG with grey and Caffe trains on it. What comes after the last pixel does not
// matter (a missing end marker, extra bytes).
//
// Limits: 2^28 pixels, and no more than the data can hold: a Huffman JPEG needs one bit per block of 8x8 (arithmetic
// coding is given 64 times the room), deflate expands by at most 1,032. So n bytes of JPEG cost at most about 3 KB * n,
// of PNG 33 KB * n (one bit a pixel, palette with alpha). A JPEG has at most 100 scans.
#pragma once
#include <string>
#include <string_view>

#include "data/image.h"

namespace crema::data {

enum class ColourMode { kAsIs, kGrey, kColour };

// False: *why completes "the image ..." ("is neither JPEG nor PNG") and *out is undefined. Never throws, whatever the
// bytes. Reuses the memory of *out. Any thread may call it.
[[nodiscard]] bool decodeImage(std::string_view bytes, ColourMode colour, Image* out, std::string* why) noexcept;

}  // namespace crema::data
