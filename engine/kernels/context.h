// What every kernel call needs: the instruction set chosen once per process, the threads, and scratch memory.
// The bits of every result depend on shapes and inputs alone: never on Isa, thread count, or what ran before.
#pragma once
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/thread_pool.h"

namespace crema::kernels {

enum class Isa { kAvx2, kAvx512 };
const char* name(Isa isa);               // "avx2", "avx512"
Isa bestIsa();                           // by cpuid; invalid() when the CPU lacks AVX2 or FMA
Isa chooseIsa(std::string_view wanted);  // "" = bestIsa(); invalid() for unknown names and for what this CPU lacks

// One per process or per test; used from one thread at a time. Holds grow-only scratch buffers (huge pages where
// possible).
class Context {
 public:
  Context(Isa isa, int threads);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  Isa isa() const { return isa_; }
  ThreadPool& pool() { return pool_; }
  struct Scratch;  // private to the kernels
  Scratch& scratch() { return *scratch_; }

 private:
  Isa isa_;
  ThreadPool pool_;
  std::unique_ptr<Scratch> scratch_;
};

}  // namespace crema::kernels
