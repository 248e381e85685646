#include "data/image_file.h"

#include "base/error.h"
#include "base/file.h"
#include "data/resize.h"

namespace crema::data {

Image imageOfFile(std::string_view bytes, const std::string& path, const ImageReading& how) {
  Image image;
  std::string why;
  if (!decodeImage(bytes, how.colour, &image, &why))
    badData("{}: the image {}; convert or repair the file, or leave it out", path, why);
  if (how.height <= 0 || how.width <= 0 || (image.height == how.height && image.width == how.width)) return image;
  return resizeBilinear(image.view(), how.height, how.width);
}

Image readImageFile(const std::string& path, const ImageReading& how) { return imageOfFile(readFile(path), path, how); }

}  // namespace crema::data
