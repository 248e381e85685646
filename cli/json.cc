#include "cli/json.h"

#include <fmt/core.h>

#include <cmath>
#include <cstdio>

namespace crema::cli {
namespace {

// Bytes of the UTF-8 character at the front; 0 when there is none.
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

}  // namespace

void Json::open(char bracket) {
  out_ += bracket;
  closing_ += bracket == '{' ? '}' : ']';
  first_ = true;
}

void Json::end() {
  out_ += closing_.back();
  closing_.pop_back();
  first_ = false;
}

void Json::key(std::string_view name) {
  if (!first_) out_ += ", ";
  first_ = false;
  if (name.empty()) return;
  quote(name);
  out_ += ": ";
}

// File names may hold any bytes: invalid UTF-8 becomes U+FFFD.
void Json::quote(std::string_view text) {
  out_ += '"';
  while (!text.empty()) {
    const size_t n = utf8Length(text);
    const char c = text[0];
    if (n == 0)
      out_ += "\xef\xbf\xbd";
    else if (c == '"' || c == '\\')
      out_ += '\\', out_ += c;
    else if (n == 1 && (c < ' ' || c == 127))
      out_ += fmt::format("\\u{:04x}", static_cast<int>(c));
    else
      out_ += text.substr(0, n);
    text.remove_prefix(n ? n : 1);
  }
  out_ += '"';
}

void Json::text(std::string_view name, std::string_view value) { key(name), quote(value); }
void Json::integer(std::string_view name, int64_t value) { key(name), out_ += std::to_string(value); }
void Json::null(std::string_view name) { key(name), out_ += "null"; }
void Json::number(std::string_view name, double value) {
  key(name);
  out_ += std::isfinite(value) ? fmt::format("{}", value) : "null";
}
void Json::number(std::string_view name, float value) {
  key(name);
  out_ += std::isfinite(value) ? fmt::format("{}", value) : "null";
}

void Json::print() {
  while (!closing_.empty()) end();
  std::printf("%s\n", out_.c_str());
}

}  // namespace crema::cli
