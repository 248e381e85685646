// What times a kernel: its main output is compared with that of the reference loops before any time is taken.
#pragma once
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/random.h"
#include "kernels/kernels.h"
#include "kernels/ref/ref.h"

namespace crema::kernels::bench {

using Floats = std::vector<float>;

inline Floats numbers(int64_t count, uint64_t seed) {
  RandomKey key;
  key.seed = seed;
  const RandomStream stream(key);
  Floats v(static_cast<size_t>(count));
  for (size_t i = 0; i < v.size(); ++i) v[i] = static_cast<float>(2 * stream.uniform(i) - 1);
  return v;
}

// At most 1e-4 of the largest value.
template <class T>
void expectNear(const std::string& what, const T* got, const std::vector<T>& want) {
  double largest = 0, error = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    largest = std::max(largest, std::fabs(static_cast<double>(want[i])));
    const double e = std::fabs(static_cast<double>(got[i]) - static_cast<double>(want[i]));
    error = std::isnan(e) ? INFINITY : std::max(error, e);
  }
  if (!(error <= 1e-4 * largest)) internal("{}: off by {} where the largest value is {}", what, error, largest);
}

// Of one call: floating-point operations, and bytes that are read and written at least. Zero: not printed.
struct Work {
  double flops = 0, bytes = 0;
};
inline Work flops(double count) { return {.flops = count}; }
template <class... Size>
Work bytesOf(Size... floats) {
  return {.bytes = 4.0 * static_cast<double>((floats + ...))};
}

class Bench {
 public:
  Bench(const Isa& isa, int threads, int repetitions) : context_(isa, threads), repetitions_(repetitions) {}

  Context& context() { return context_; }
  const std::set<std::string>& timed() const { return timed_; }

  // What the first run has left in `got` is compared with what the reference writes. kernel: its name, as kernels.h has it.
  template <class T>
  void time(const char* layer, const char* kernel, Work work, const std::function<void()>& run,
            const std::vector<T>& got, const std::function<void(T* want)>& reference) {
    time<T>(layer, kernel, work, run, got.data(), static_cast<int64_t>(got.size()), reference);
  }
  template <class T>
  void time(const char* layer, const char* kernel, Work work, const std::function<void()>& run, const T* got,
            int64_t count, const std::function<void(T* want)>& reference) {
    run();
    std::vector<T> want(static_cast<size_t>(count));
    reference(want.data());
    expectNear(std::string(layer) + ", " + kernel, got, want);
    timed_.insert(kernel);
    const double best = bestOf(run);
    std::printf("%-12s %-19s %8.3f ms", layer, kernel, best);
    if (work.flops > 0) std::printf("  %7.1f GFLOP/s", work.flops / best / 1e6);
    if (work.bytes > 0) std::printf("  %7.1f GB/s", work.bytes / best / 1e6);
    std::printf("\n");
    total_ += best;
  }

  void total(const char* net) {
    std::printf("%-12s step                %8.3f ms\n\n", net, total_);
    total_ = 0;
  }

 private:
  // Milliseconds.
  double bestOf(const std::function<void()>& run) {
    double best = INFINITY;
    for (int i = 0; i < repetitions_; ++i) {
      const auto from = std::chrono::steady_clock::now();
      run();
      const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - from;
      best = std::min(best, took.count());
    }
    return best;
  }

  Context context_;
  int repetitions_;
  double total_ = 0;
  std::set<std::string> timed_;
};

}  // namespace crema::kernels::bench
