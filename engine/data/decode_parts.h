// Inside decode: one function a format, with decodeImage's contract except that std::bad_alloc may leave them.
//
// Both libraries report errors by a callback that must not return, so it uses longjmp(). Each phase that may jump is a
// function of its own without C++ objects, and what the jump leaves behind belongs to an object of its caller.
#pragma once
#include <string>
#include <string_view>

#include "data/decode.h"

namespace crema::data {

constexpr int64_t kMostPixels = int64_t{1} << 28;

[[nodiscard]] bool decodeJpeg(std::string_view bytes, ColourMode colour, Image* out, std::string* why);
[[nodiscard]] bool decodePng(std::string_view bytes, ColourMode colour, Image* out, std::string* why);

}  // namespace crema::data
