// Kernels in every way of computing them: instruction set, threads, alignment. Their bits must agree, their values stay
// within a few units in the last place of double loops', and memory next to their outputs must not change.
#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <type_traits>
#include <vector>

#include "base/random.h"
#include "kernels/kernels.h"
#include "kernels/ref/ref.h"
#include "kernels/scratch.h"
#include "support/isas_here.h"
#include "support/largest.h"

namespace crema::kernels {

// Uniform in [offset - 1, offset + 1).
template <class T = float>
std::vector<T> numbers(size_t count, uint64_t seed, double offset = 0) {
  RandomKey key;
  key.seed = seed;
  const RandomStream stream(key);
  std::vector<T> v(count);
  for (size_t i = 0; i < count; ++i) v[i] = static_cast<T>(offset + 2 * stream.uniform(i) - 1);
  return v;
}

inline std::vector<double> wide(const std::vector<float>& v) { return {v.begin(), v.end()}; }

// A buffer at a chosen offset from 64-byte alignment, with sentinels on both sides that must survive.
template <class T>
class Guarded {
 public:
  Guarded(size_t count, int offset, T fill) : storage_(count + 96 + 64 / sizeof(T), kSentinel), count_(count) {
    const size_t past = reinterpret_cast<uintptr_t>(storage_.data()) % 64 / sizeof(T);
    begin_ = 32 + 64 / sizeof(T) - past + static_cast<size_t>(offset);
    std::fill_n(data(), count, fill);
  }
  T* data() { return storage_.data() + begin_; }
  std::vector<T> take(const char* what) {
    for (size_t i = 0; i < storage_.size(); ++i)
      if (i < begin_ || i >= begin_ + count_) {
        EXPECT_EQ(storage_[i], kSentinel)
            << what << " wrote outside its output, at " << static_cast<long>(i) - static_cast<long>(begin_);
      }
    return {data(), data() + count_};
  }

 private:
  static constexpr T kSentinel = 12345;
  std::vector<T> storage_;
  size_t begin_, count_;
};

// Inputs between what is no number: a kernel that uses what lies in front or behind shows it. Where reads are watched,
// nothing lies there.
class Surrounded {
 public:
  explicit Surrounded(const std::vector<float>& numbers) : all_(numbers.size() + 2 * kMargin, NAN) {
    std::copy(numbers.begin(), numbers.end(), all_.begin() + kMargin);
  }
  const float* data() const { return all_.data() + kMargin; }

 private:
#ifdef __SANITIZE_ADDRESS__
  static constexpr size_t kMargin = 0;
#else
  static constexpr size_t kMargin = 128;
#endif
  std::vector<float> all_;
};

// What an earlier call might have left in working memory.
inline void spoil(Context& context) {
  for (LaneScratch& lane : context.scratch().lane)
    for (Buffer* buffer : {&lane.planes, &lane.panel, &lane.tile, &lane.transposed}) buffer->fill(NAN);
  for (Buffer& buffer : context.scratch().shared) buffer.fill(NAN);
}

// Ways of computing: 1 to 13 threads and two alignments; few for what takes seconds each.
enum class Ways { All, Few };

// Runs kernel(context, out) for every instruction set and in these ways, and once more with other leavings in working memory;
// all bits must agree. Returns the result.
template <class T = float, class Kernel>
std::vector<T> sameBits(const char* what, size_t count, std::type_identity_t<T> fill, Kernel kernel,
                        Ways ways = Ways::All) {
  const bool few = ways == Ways::Few;
  std::vector<T> first;
  for (const Isa* isa : isasHere())
    for (int threads : few ? std::vector{2} : std::vector{1, 2, 3, 13})
      for (int offset : few ? std::vector{5} : std::vector{0, 5}) {
        Context context(*isa, threads);
        for (const bool spoilt : {false, true}) {
          if (spoilt && threads > 2) continue;
          if (spoilt) spoil(context);
          Guarded<T> out(count, offset, fill);
          kernel(context, out.data());
          const auto got = out.take(what);
          if (first.empty()) first = got;
          EXPECT_TRUE(count == 0 || std::memcmp(first.data(), got.data(), count * sizeof(T)) == 0)
              << what << ": bits differ with " << name(*isa) << ", " << threads << " threads, offset " << offset
              << (spoilt ? ", on used memory" : "");
        }
      }
  return first;
}

// |got - want| within a few units in the last place of the sum of magnitudes.
inline void near(const char* what, const std::vector<float>& got, const std::vector<double>& want,
                 const std::vector<double>& magnitude) {
  double worst = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    const double error = std::fabs(got[i] - want[i]) / (magnitude[i] * 1.2e-7 + 1e-30);
    worst = test::larger(worst, error);
  }
  EXPECT_LT(worst, 64) << what << ": error in ulp of the sum of magnitudes";
}

inline std::vector<double> magnitudes(const std::vector<double>& v) {
  std::vector<double> m(v);
  for (double& x : m) x = std::fabs(x);
  return m;
}

}  // namespace crema::kernels
