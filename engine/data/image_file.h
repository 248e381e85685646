// An image in a file of its own, as Caffe's ReadImageToCVMat gives it.
#pragma once
#include <string>
#include <string_view>

#include "data/decode.h"
#include "data/image.h"

namespace crema::data {

// 0 x 0: the file's own size. kIo: it cannot be read; kData: it is no complete JPEG or PNG.
struct ImageReading {
  ColourMode colour = ColourMode::kColour;
  int height = 0, width = 0;
};
Image readImageFile(const std::string& path, const ImageReading& how);
Image imageOfFile(std::string_view bytes, const std::string& path, const ImageReading& how);  // the file's bytes

}  // namespace crema::data
