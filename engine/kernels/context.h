// What every kernel call needs: the instruction set chosen once per process, the threads, and scratch memory.
// The bits of every result depend on shapes and inputs alone: never on the instruction set, the thread count, or what
// ran before.
#pragma once
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/thread_pool.h"

namespace crema::kernels {

struct Isa;                             // an instruction set for which there is vector code: kernels/table.h
const char* name(const Isa& isa);       // "avx2", "avx512"
bool runsHere(const Isa& isa);          // whether this CPU has it
const std::vector<const Isa*>& isas();  // all of them; later ones are preferred
std::string isaNames();                 // "avx2 or avx512"
const Isa& bestIsa();                   // the last one that this CPU has; invalid() when it has none
// "" = bestIsa(); invalid() for names that are unknown or that this CPU lacks
const Isa& chooseIsa(std::string_view wanted);

// One per process or per test; used from one thread at a time. Holds grow-only scratch buffers (huge pages where
// possible).
class Context {
 public:
  Context(const Isa& isa, int threads);  // 0 threads: one per core that this process may use
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  const Isa& isa() const { return isa_; }
  ThreadPool& pool() { return pool_; }
  struct Scratch;  // private to the kernels
  Scratch& scratch() { return *scratch_; }

 private:
  const Isa& isa_;
  ThreadPool pool_;
  std::unique_ptr<Scratch> scratch_;
};

// While one lives, the weights that convolutions of its context get keep their values and their place: what is packed of
// them is kept, once more their memory (twice where they are
// filtered, decision 0101) for half the time of a pass over one picture. May be nested.
class FrozenWeights {
 public:
  explicit FrozenWeights(Context& context);
  ~FrozenWeights();
  FrozenWeights(const FrozenWeights&) = delete;

 private:
  Context& context_;
};

// The kernels for numbers of type T: the vector code of the context's instruction set for float, the reference loops
// for double. kernels/table.h.
template <class T>
struct Table;
template <class T>
const Table<T>& tableOf(const Context&);

}  // namespace crema::kernels
