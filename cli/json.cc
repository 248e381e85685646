#include "cli/json.h"

#include <fmt/core.h>

#include <cmath>
#include <cstdio>

#include "base/text.h"

namespace crema::cli {

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
