#include "base/sha256.h"

#include <fmt/core.h>
#include <sodium.h>

namespace crema {

std::string sha256Hex(std::string_view bytes) {
  unsigned char hash[crypto_hash_sha256_BYTES];
  crypto_hash_sha256(hash, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  std::string text;
  for (unsigned char c : hash) text += fmt::format("{:02x}", c);
  return text;
}

}  // namespace crema
