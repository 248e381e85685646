#include "kernels/context.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <new>

#include "base/error.h"
#include "kernels/scratch.h"

namespace crema::kernels {

const char* name(Isa isa) { return isa == Isa::kAvx512 ? "avx512" : "avx2"; }

namespace {

bool hasAvx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
bool hasAvx512() {
  return hasAvx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw");
}

}  // namespace

Isa bestIsa() {
  if (hasAvx512()) return Isa::kAvx512;
  if (hasAvx2()) return Isa::kAvx2;
  invalid("this CPU has no AVX2 and FMA instructions; crema needs an x86-64 CPU of 2013 (Haswell, Zen) or later");
}

Isa chooseIsa(std::string_view wanted) {
  if (wanted.empty()) return bestIsa();
  if (wanted == "avx2" && hasAvx2()) return Isa::kAvx2;
  if (wanted == "avx512" && hasAvx512()) return Isa::kAvx512;
  if (wanted == "avx2" || wanted == "avx512") invalid("-isa {}: this CPU does not have it; leave -isa out", wanted);
  invalid("-isa must be avx2 or avx512, not '{}'", wanted);
}

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

Context::Context(Isa isa, int threads) : isa_(isa), pool_(threads), scratch_(std::make_unique<Scratch>(pool_.size())) {}
Context::~Context() = default;

}  // namespace crema::kernels
