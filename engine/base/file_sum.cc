#include "base/file_sum.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/mapped_file.h"
#include "base/packet_sum.h"

namespace crema {

uint64_t fileSum(const std::string& path, uint64_t seed) {
  constexpr size_t kPiece = size_t{4} << 20;
  const MappedFile file(path);
  const std::string_view all = file.bytes();
  std::vector<char> piece(std::min(kPiece, all.size()));
  for (size_t at = 0; at < all.size(); at += kPiece) {
    const std::string_view part = all.substr(at, kPiece);
    file.read(part, piece.data());
    seed = packetSum(piece.data(), part.size(), seed);
  }
  return seed;
}

}  // namespace crema
