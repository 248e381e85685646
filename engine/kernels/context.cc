#include "kernels/context.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <new>

#include "base/error.h"
#include "kernels/scratch.h"

namespace crema::kernels {

Buffer::~Buffer() { std::free(memory_); }

float* Buffer::get(size_t count) {
  constexpr size_t kPage = size_t{2} << 20, kSlack = 128;
  if (count > (size_t{1} << 40)) internal("scratch memory of {} numbers was asked for", count);
  if (count > capacity_ || !memory_) {
    std::free(memory_);
    const size_t bytes = (count * sizeof(float) + 2 * kSlack + kPage - 1) / kPage * kPage;
    memory_ = std::aligned_alloc(kPage, bytes);
    if (!memory_) throw std::bad_alloc();
    madvise(memory_, bytes, MADV_HUGEPAGE);
    std::memset(memory_, 0, bytes);
    capacity_ = (bytes - 2 * kSlack) / sizeof(float);
  }
  return reinterpret_cast<float*>(static_cast<char*>(memory_) + kSlack);
}

Context::Context(const Isa& isa, int threads)
    : isa_(isa), pool_(threads > 0 ? threads : availableCores()), scratch_(std::make_unique<Scratch>(pool_.size())) {}
Context::~Context() = default;

}  // namespace crema::kernels
