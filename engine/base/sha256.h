// SHA-256 (FIPS 180-4): digests of state and of records, names of contents.
#pragma once
#include <string>
#include <string_view>

namespace crema {

std::string sha256Hex(std::string_view bytes);  // 64 digits, lower case

}  // namespace crema
