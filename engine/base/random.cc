#include "base/random.h"

#include <Random123/philox.h>

#include <cmath>
#include <numbers>

namespace crema {
namespace {
using Philox = r123::Philox4x32;
}

uint64_t hashName(std::string_view text) {
  uint64_t hash = 14695981039346656037ull;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  return hash;
}

// The key of a stream has more bits than Philox's 64: seed and purpose key a first evaluation over (name, step, rank),
// whose 128-bit result becomes the stream's key (64 bits) and the high half of its counter (64 bits).
RandomStream::RandomStream(const RandomKey& key) {
  const uint64_t name = key.name + 0x9e3779b97f4a7c15ull * static_cast<uint32_t>(key.purpose);
  const Philox::key_type k{{static_cast<uint32_t>(key.seed), static_cast<uint32_t>(key.seed >> 32)}};
  const Philox::ctr_type first{{static_cast<uint32_t>(name), static_cast<uint32_t>(name >> 32), key.rank, 0u}};
  const Philox::ctr_type a = Philox()(first, k);
  const Philox::ctr_type second{{a[2] ^ static_cast<uint32_t>(key.step), a[3] ^ static_cast<uint32_t>(key.step >> 32),
                                 static_cast<uint32_t>(key.purpose), 1u}};
  const Philox::key_type k2{{a[0], a[1]}};
  const Philox::ctr_type b = Philox()(second, k2);
  key_ = {b[0], b[1]};
  base_ = {b[2], b[3]};
}

std::array<uint32_t, 4> RandomStream::block(uint64_t index) const {
  const Philox::ctr_type counter{
      {static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32), base_[0], base_[1]}};
  const Philox::key_type k{{key_[0], key_[1]}};
  const Philox::ctr_type r = Philox()(counter, k);
  return {r[0], r[1], r[2], r[3]};
}

double RandomStream::uniform(uint64_t index) const {
  const auto r = block(index);
  return static_cast<double>((static_cast<uint64_t>(r[0]) << 21) ^ (r[1] >> 11)) * 0x1p-53;
}

double RandomStream::gaussian(uint64_t index) const {
  const auto r = block(index);
  const double u = (static_cast<double>(r[0]) * 4294967296.0 + r[1] + 0.5) * 0x1p-64;  // (0, 1)
  const double v = (static_cast<double>(r[2]) * 4294967296.0 + r[3]) * 0x1p-64;
  return std::sqrt(-2.0 * std::log(u)) * std::cos(2.0 * std::numbers::pi * v);
}

uint64_t RandomStream::below(uint64_t index, uint64_t limit) const {
  const auto r = block(index);
  const uint64_t wide = static_cast<uint64_t>(r[0]) << 32 | r[1];
  return static_cast<uint64_t>(static_cast<unsigned __int128>(wide) * limit >> 64);
}

}  // namespace crema
