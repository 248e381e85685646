// Lists in flags, "a, b", and in messages, "a, b or c"; bytes as people read them.
#pragma once
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace crema {

// What stands between commas, without the blanks around it; empty pieces are left out.
inline std::vector<std::string> splitList(std::string_view text) {
  std::vector<std::string> all;
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    std::string_view piece = text.substr(0, comma);
    text.remove_prefix(std::min(comma + 1, text.size()));
    while (!piece.empty() && (piece.front() == ' ' || piece.front() == '\t')) piece.remove_prefix(1);
    while (!piece.empty() && (piece.back() == ' ' || piece.back() == '\t')) piece.remove_suffix(1);
    if (!piece.empty()) all.emplace_back(piece);
  }
  return all;
}

// "a, b"; names: strings or views of them
template <class Names>
std::string joined(const Names& names, std::string_view separator = ", ") {
  std::string text;
  for (const auto& name : names) (text.empty() ? text : text += separator) += name;
  return text;
}

// "a", "a or b", "a, b or c"
inline std::string alternatives(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) text += (i == 0 ? "" : i + 1 < names.size() ? ", " : " or ") + names[i];
  return text;
}

size_t utf8Length(std::string_view s);  // bytes of the UTF-8 character at the front; 0 when there is none

// Bytes of any origin, such as a record's key, for a terminal or a log: control characters and what is not UTF-8 are
// written \x1b.
std::string printable(std::string_view bytes);

}  // namespace crema
