// Messages on a stream between processes: payload bytes as u32 little endian, then the message.
#pragma once
#include <google/protobuf/message_lite.h>

#include <array>
#include <cstdint>
#include <string>

namespace crema::cluster {

constexpr size_t kFrameHead = 4;

inline std::string framed(const google::protobuf::MessageLite& message) {
  std::string bytes(kFrameHead, '\0');
  message.AppendToString(&bytes);
  const auto size = static_cast<uint32_t>(bytes.size() - kFrameHead);
  for (size_t i = 0; i < kFrameHead; ++i) bytes[i] = static_cast<char>(size >> (8 * i) & 255);
  return bytes;
}

inline uint32_t payloadOf(const std::array<unsigned char, kFrameHead>& head) {
  uint32_t size = 0;
  for (size_t i = 0; i < kFrameHead; ++i) size |= static_cast<uint32_t>(head[i]) << (8 * i);
  return size;
}

}  // namespace crema::cluster
