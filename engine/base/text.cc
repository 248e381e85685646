#include "base/text.h"

#include <fmt/core.h>

namespace crema {

size_t utf8Length(std::string_view s) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(s[i]); };
  const size_t n = byte(0) < 0x80                      ? 1
                   : byte(0) >= 0xc2 && byte(0) < 0xe0 ? 2
                   : byte(0) >= 0xe0 && byte(0) < 0xf0 ? 3
                   : byte(0) >= 0xf0 && byte(0) < 0xf5 ? 4
                                                       : 0;
  if (n == 0 || s.size() < n) return 0;
  for (size_t i = 1; i < n; ++i)
    if ((byte(i) & 0xc0) != 0x80) return 0;
  return n;
}

std::string printable(std::string_view bytes) {
  std::string text;
  while (!bytes.empty()) {
    const size_t n = utf8Length(bytes);
    const auto first = static_cast<unsigned char>(bytes[0]), second = static_cast<unsigned char>(bytes[n > 1 ? 1 : 0]);
    const bool control = first < ' ' || first == 0x7f || (first == 0xc2 && second < 0xa0);
    if (n == 0 || control)
      text += fmt::format("\\x{:02x}", first);
    else
      text += bytes.substr(0, n);
    bytes.remove_prefix(n == 0 || control ? 1 : n);
  }
  return text;
}

}  // namespace crema
