// Pixels, borrowed or owned. A view costs nothing and may lie in a record, in a mapped file or in an Image.
#pragma once
#include <cstdint>
#include <vector>

namespace crema::data {

// Exactly one of bytes and floats is set. interleaved: [height][width][channels] as OpenCV; else [channels][height]
// [width] as a Datum. Colours are B, G, R (and alpha).
struct ImageView {
  int channels = 0, height = 0, width = 0;
  const unsigned char* bytes = nullptr;
  const float* floats = nullptr;
  bool interleaved = false;
  int64_t count() const { return static_cast<int64_t>(channels) * height * width; }
};

struct Image {
  int channels = 0, height = 0, width = 0;
  std::vector<unsigned char> bytes;  // [height][width][channels]
  ImageView view() const { return {channels, height, width, bytes.data(), nullptr, true}; }
};

}  // namespace crema::data
