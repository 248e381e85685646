// Rows that a host program sends, one value per field:
//   a number or an array    float32 values, little-endian
//   an image                four int32 (channels, height, width, encoded 0/1; sizes 0 when unknown), then the bytes:
//                           JPEG or PNG, or pixels row by row with their channels side by side (HWC)
// In memory and in the staging file a row is: for the id and then each field a uint32 count of bytes, the bytes, and
// padding to a multiple of 4. Host and executable run on one machine, so the byte order is that machine's, which must
// be little-endian.
#pragma once
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "base/error.h"

namespace crema::data {

// Walks the fields of one row.
class RowReader {
 public:
  explicit RowReader(std::string_view bytes) : rest_(bytes) {}
  bool more() const { return !rest_.empty(); }
  std::string_view next() {
    uint32_t size = 0;
    if (rest_.size() < sizeof size) internal("a staged row ends inside a field");
    std::memcpy(&size, rest_.data(), sizeof size);
    const size_t padded = (size_t{size} + 3) / 4 * 4;
    if (rest_.size() - sizeof size < padded) internal("a staged row ends inside a field of {} bytes", size);
    const std::string_view field = rest_.substr(sizeof size, size);
    rest_.remove_prefix(sizeof size + padded);
    return field;
  }

 private:
  std::string_view rest_;
};

inline size_t rowFieldBytes(size_t size) { return sizeof(uint32_t) + (size + 3) / 4 * 4; }

// Appends a field at `to` and returns the place behind it.
inline char* putRowField(char* to, std::string_view field) {
  const auto size = static_cast<uint32_t>(field.size());
  std::memcpy(to, &size, sizeof size);
  std::memcpy(to + sizeof size, field.data(), field.size());
  std::memset(to + sizeof size + field.size(), 0, rowFieldBytes(field.size()) - sizeof size - field.size());
  return to + rowFieldBytes(field.size());
}

}  // namespace crema::data
