#include "data/resize.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"

namespace crema::data {
namespace {

constexpr int kOne = 2048;

struct Tap {
  int64_t first, second;  // offsets of the two samples
  int a0, a1;             // their weights, whose sum is 2048 up to rounding
};

// At the borders OpenCV gives the edge sample the full weight along a row, but down a column keeps both weights,
// applied to the edge row twice: rounding the two products can cost one grey level.
std::vector<Tap> taps(int from, int to, int64_t stride, bool keepWeights) {
  std::vector<Tap> all(static_cast<size_t>(to));
  const double scale = 1.0 / (static_cast<double>(to) / from);  // rounded twice, as in OpenCV, which decides ties
  for (int i = 0; i < to; ++i) {
    auto f = static_cast<float>((i + 0.5) * scale - 0.5);
    int s = static_cast<int>(std::floor(f));
    f -= static_cast<float>(s);
    if (!keepWeights && (s < 0 || s >= from - 1)) f = 0;
    const int first = std::clamp(s, 0, from - 1), second = std::clamp(s + 1, 0, from - 1);
    all[static_cast<size_t>(i)] = {first * stride, second * stride, static_cast<int>(std::lrintf((1.f - f) * kOne)),
                                   static_cast<int>(std::lrintf(f * kOne))};
  }
  return all;
}

}  // namespace

Image resizeBilinear(const ImageView& v, int height, int width) {
  if (!v.bytes) invalid("only 8-bit pixels can be resized, and these are floats; resize before converting");
  if (height < 1 || width < 1 || v.count() < 1)
    invalid("a {}x{}x{} image cannot become {}x{} pixels", v.channels, v.height, v.width, height, width);
  const int64_t c = v.channels, plane = static_cast<int64_t>(v.height) * v.width;
  const auto across = taps(v.width, width, v.interleaved ? c : 1, false);
  const auto down = taps(v.height, height, v.interleaved ? c * v.width : v.width, true);
  const size_t row = static_cast<size_t>(width) * static_cast<size_t>(c);
  Image out{v.channels, height, width, std::vector<unsigned char>(row * static_cast<size_t>(height))};
  // Two rows after the horizontal step; when enlarging, each is used several times.
  std::vector<int> above(row), below(row);
  int64_t haveAbove = -1, haveBelow = -1;
  const auto fill = [&](std::vector<int>& to, int64_t& have, int64_t from) {
    if (have == from) return;
    have = from;
    int* p = to.data();
    for (const Tap& t : across)
      for (int64_t k = 0; k < c; ++k) {
        const unsigned char* s = v.bytes + from + (v.interleaved ? k : k * plane);
        *p++ = (s[t.first] * t.a0 + s[t.second] * t.a1) >> 4;
      }
  };
  unsigned char* to = out.bytes.data();
  for (const Tap& t : down) {
    if (haveBelow == t.first) std::swap(above, below), std::swap(haveAbove, haveBelow);
    fill(above, haveAbove, t.first);
    fill(below, haveBelow, t.second);
    for (size_t x = 0; x < row; ++x)
      *to++ = static_cast<unsigned char>(((t.a0 * above[x] >> 16) + (t.a1 * below[x] >> 16) + 2) >> 2);
  }
  return out;
}

}  // namespace crema::data
