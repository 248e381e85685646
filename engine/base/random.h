// Counter-based random numbers: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011).
// Streams have no state: a number depends on the stream's key and the index alone, not on earlier calls, threads or the
// number of workers.
#pragma once
#include <array>
#include <cstdint>
#include <string_view>

namespace crema {

// What the numbers are for; part of the key so that two uses never share a stream.
enum class RandomPurpose : uint32_t {
  kFiller = 1,
  kDropout = 2,
  kMirror = 3,
  kCrop = 4,
  kShuffle = 5,
  kPooling = 6,
  kSkip = 7,
  kWindow = 8,
  kTest = 99
};

struct RandomKey {
  uint64_t seed = 0;
  RandomPurpose purpose = RandomPurpose::kTest;
  uint64_t name = 0;  // hashName() of a layer or parameter
  uint64_t step = 0;  // iteration * iter_size + sub-step, or the epoch
  uint32_t rank = 0;
};

uint64_t hashName(std::string_view text);  // 64-bit FNV-1a: the same everywhere, for ever

// Random access: block(i) is four 32-bit words. Cheap to construct (one Philox evaluation folds the key).
class RandomStream {
 public:
  explicit RandomStream(const RandomKey& key);
  std::array<uint32_t, 4> block(uint64_t index) const;
  double uniform(uint64_t index) const;                  // [0, 1), 53 bits; uses block `index`
  double gaussian(uint64_t index) const;                 // mean 0, deviation 1 (Box-Muller on block `index`)
  uint64_t below(uint64_t index, uint64_t limit) const;  // [0, limit), limit >= 1, unbiased to 2^-64

 private:
  std::array<uint32_t, 2> key_;
  std::array<uint32_t, 2> base_;
};

}  // namespace crema
