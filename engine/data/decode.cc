#include "data/decode.h"

#include <exception>

#include "data/decode_parts.h"

namespace crema::data {

bool decodeImage(std::string_view bytes, ColourMode colour, Image* out, std::string* why) noexcept {
  try {
    if (bytes.substr(0, 3) == "\xff\xd8\xff") return decodeJpeg(bytes, colour, out, why);
    if (bytes.substr(0, 8) == std::string_view("\x89PNG\r\n\x1a\n", 8)) return decodePng(bytes, colour, out, why);
    *why = bytes.empty() ? "has no bytes" : "is neither JPEG nor PNG";
  } catch (const std::exception&) {  // std::bad_alloc
    *why = "needs more memory than there is";
  }
  return false;
}

}  // namespace crema::data
