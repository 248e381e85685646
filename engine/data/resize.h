// Bilinear resizing of 8-bit pixels with OpenCV's INTER_LINEAR results, bit for bit.
#pragma once
#include "data/image.h"

namespace crema::data {

// Destination x samples source fx = (x + 1/2) * width / newWidth - 1/2, held inside the picture, likewise y; weights
// are rounded to 1/2048. With b the vertical weights and H = p[sx] * a0 + p[sx + 1] * a1 along a row:
//   out = ((b0 * (H0 >> 4) >> 16) + (b1 * (H1 >> 4) >> 16) + 2) >> 2
// No smoothing before shrinking, as there. kInvalid: sizes below 1, or a view of floats.
Image resizeBilinear(const ImageView& from, int height, int width);

}  // namespace crema::data
