#include "kernels/context.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include "base/error.h"
#include "kernels/scratch.h"

namespace crema::kernels {

Buffer::~Buffer() { std::free(memory_); }

float* Buffer::get(size_t count) {
  constexpr size_t kHuge = size_t{2} << 20, kSlack = 128;
  if (count > (size_t{1} << 40)) internal("scratch memory of {} numbers was asked for", count);
  if (count > capacity_ || !memory_) {
    std::free(memory_);
    const size_t needed = count * sizeof(float) + 2 * kSlack, page = needed < kHuge / 2 ? 4096 : kHuge;
    const size_t bytes = (needed + page - 1) / page * page;
    memory_ = std::aligned_alloc(page, bytes);
    if (!memory_) throw std::bad_alloc();
    if (page == kHuge) madvise(memory_, bytes, MADV_HUGEPAGE);
    std::memset(memory_, 0, bytes);
    capacity_ = (bytes - 2 * kSlack) / sizeof(float);
  }
  return reinterpret_cast<float*>(static_cast<char*>(memory_) + kSlack);
}

void Buffer::fill(float value) {
  if (memory_) std::fill_n(get(0), capacity_, value);
}

namespace {

// sysconf() asks the processor itself; a virtual one may say 0.
size_t secondCacheBytes() {
  const long known = ::sysconf(_SC_LEVEL2_CACHE_SIZE);
  return std::clamp<size_t>(known > 0 ? static_cast<size_t>(known) : 0, size_t{1} << 19, size_t{1} << 22);
}

int threadsOf(int wanted) {
  if (wanted < 0) invalid("threads must be 0, for all cores, or more, not {}", wanted);
  return wanted > 0 ? wanted : availableCores();
}

}  // namespace

Context::Context(const Isa& isa, int threads)
    : isa_(isa), pool_(threadsOf(threads)), scratch_(std::make_unique<Scratch>(pool_.size())) {}
Context::~Context() = default;

Context::Scratch::Scratch(int lanes)
    : lane(static_cast<size_t>(lanes)), secondCache(secondCacheBytes() / sizeof(float)) {}

float* Context::Scratch::kept(const Packing& packing) {
  const auto found = packed.find(packing);
  return found == packed.end() ? nullptr : found->second.get(0);
}
float* Context::Scratch::keep(const Packing& packing, Buffer weights) {
  return packed.emplace(packing, std::move(weights)).first->second.get(0);
}

FrozenWeights::FrozenWeights(Context& context) : context_(context) { ++context.scratch().freezes; }
FrozenWeights::~FrozenWeights() {
  auto& scratch = context_.scratch();
  if (--scratch.freezes == 0) scratch.packed.clear();
}

}  // namespace crema::kernels
