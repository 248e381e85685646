#include "base/random_bytes.h"

#include <sodium.h>

namespace crema {

std::string randomBytes(size_t count) {
  std::string bytes(count, '\0');
  randombytes_buf(bytes.data(), count);
  return bytes;
}

}  // namespace crema
