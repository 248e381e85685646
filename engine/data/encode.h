// 8-bit pixels to JPEG and PNG, with the settings and so the bytes of OpenCV's imencode: JPEG at quality 95, chroma
// subsampled 2 x 2, not progressive; PNG with the left-neighbour filter, run lengths only, fastest level.
#pragma once
#include <string>

#include "data/image.h"

namespace crema::data {

std::string encodeJpeg(const Image& image);  // 1 or 3 channels
std::string encodePng(const Image& image);   // 1, 3 or 4 channels

enum class Encoding { kJpeg, kPng };
// "jpg", "jpeg", "png" in any case; invalid() for others.
Encoding parseEncoding(const std::string& name);
std::string encodeImage(const Image& image, Encoding as);

}  // namespace crema::data
