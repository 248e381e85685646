// Grow-only working memory of the kernels, on huge pages where the system gives them. Contents never outlive a call, but
// for packed weights while these are frozen.
#pragma once
#include <array>
#include <cstddef>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "kernels/context.h"
#include "kernels/kernels.h"

namespace crema::kernels {

// A blob of so many numbers (8 MB) is stored past the caches, which it has left before another layer reads it.
constexpr size_t kStreamed = size_t{1} << 21;

class Buffer {
 public:
  Buffer() = default;
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer(Buffer&& o) noexcept : memory_(o.memory_), capacity_(o.capacity_) { o.memory_ = nullptr, o.capacity_ = 0; }
  // `count` floats, 64-byte aligned, 16 readable floats in front and behind; contents are undefined.
  float* get(size_t count);
  void fill(float value);  // all that it has

 private:
  void* memory_ = nullptr;
  size_t capacity_ = 0;
};

struct LaneScratch {
  Buffer planes, panel, tile, transposed, inputs;
};

// One buffer for each use, so that two uses in one call do not collide.
enum SharedUse { kPackedWeights, kPartialSums, kSharedPlanes, kSharedTransposed, kSharedInput, kSharedUses };

// What packed weights depend on, beside the values of the weights.
struct Packing {
  enum Pass {
    kForward,
    kToData,
    kForwardWinograd,
    kToDataWinograd,
    kToDataWinogradSpread,
    kForwardTurned,
    kWinogradTurned
  };
  Pass pass;
  const float* weights;
  ConvShape shape;  // n, h, w and what shifts the kernel are not looked at

  auto words() const {
    return std::tuple(pass, weights, shape.ic, shape.oc, shape.kh, shape.kw, shape.groups, shape.strideH,
                      shape.strideW);
  }
  bool operator<(const Packing& o) const { return words() < o.words(); }
};

struct Context::Scratch {
  explicit Scratch(int lanes);
  std::vector<LaneScratch> lane;
  size_t secondCache;  // numbers that a core's second cache holds; what is divided by it never affects bits
  std::array<Buffer, kSharedUses> shared;
  std::map<Packing, Buffer> packed;  // of frozen weights
  int freezes = 0;                   // FrozenWeights that live

  // pack(to) of `count` numbers; of frozen weights it is done once. What throws leaves nothing that looks packed.
  template <class Pack>
  float* packedWeights(const Packing& packing, size_t count, const Pack& pack) {
    if (freezes == 0) {
      float* to = shared[kPackedWeights].get(count);
      pack(to);
      return to;
    }
    if (float* const there = kept(packing)) return there;
    Buffer made;
    pack(made.get(count));
    return keep(packing, std::move(made));
  }
  float* kept(const Packing& packing);  // or nullptr
  float* keep(const Packing& packing, Buffer weights);
};

}  // namespace crema::kernels
