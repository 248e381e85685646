// Convolutions of few positions, whose panels go over outputs (vector/turned.h), those whose inputs are transformed before
// threads share the outputs, by all of them or by each, and those that leave out rows of padding, by groups that many images
// change: an image has the same bits alone and among many, with every instruction set and number of threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "kernels/scratch.h"
#include "support/kernel_bits.h"

namespace crema::kernels {
namespace {

// Of one image. Outputs fill panels of AVX-512, of AVX2 alone, or neither.
constexpr ConvShape kAlone[] = {{1, 300, 7, 7, 64, 1, 1},
                                {1, 130, 3, 3, 32, 1, 1},
                                {1, 33, 15, 15, 96, 1, 1, 2, 2},
                                {1, 40, 14, 14, 48, 1, 1},
                                {1, 64, 9, 11, 128, 1, 1, 1, 1, 0, 0, 1, 1, 2},
                                {1, 150, 7, 7, 64, 3, 3, 1, 1, 1, 1},
                                {1, 20, 13, 13, 64, 3, 3, 1, 1, 1, 1},
                                {1, 32, 14, 13, 96, 3, 3, 1, 1, 0, 1, 1, 1, 2},
                                {1, 19, 14, 14, 50, 3, 3, 1, 1, 1, 1},
                                {1, 16, 28, 28, 40, 3, 3, 1, 1, 1, 1},
                                {1, 48, 27, 25, 64, 3, 3, 1, 1, 1, 1},
                                {1, 96, 22, 23, 64, 3, 3, 1, 1, 1, 1, 1, 1, 2},
                                {1, 24, 13, 12, 64, 5, 5, 1, 1, 2, 2},
                                {1, 48, 13, 13, 96, 5, 5, 1, 1, 2, 2, 1, 1, 2},
                                {1, 16, 14, 14, 48, 5, 5, 1, 1, 2, 2},
                                {1, 15, 14, 14, 48, 5, 5, 1, 1, 2, 2},
                                {1, 30, 7, 7, 35, 5, 5, 1, 1, 3, 2},
                                {1, 64, 14, 13, 33, 3, 3, 2, 2, 1, 1}};

struct AloneCase {
  explicit AloneCase(const ConvShape& of)
      : s(of),
        in(static_cast<size_t>(s.ic) * s.h * s.w),
        out(static_cast<size_t>(s.oc) * s.oh() * s.ow()),
        x(numbers(kImages * in, 1)),
        w(numbers(static_cast<size_t>(s.oc) * (s.ic / s.groups) * s.kh * s.kw, 2)),
        bias(numbers(static_cast<size_t>(s.oc), 3)),
        other(numbers(kImages * out, 4)) {}

  // Images [first, first + n), with what layers behind the convolution do.
  void forward(Context& k, size_t first, int n, float* y) const {
    ConvShape some = s;
    some.n = n;
    using S = Step<float>;
    const Epilogue<float> steps = {{S::kAffine, bias.data(), bias.data()},
                                   {.kind = S::kAdd, .other = other.data() + first * out},
                                   {.kind = S::kRelu, .slope = 0.25F}};
    convForward(k, some, x.data() + first * in, w.data(), bias.data(), y, steps);
  }
  static constexpr size_t kImages = 70;
  ConvShape s;
  size_t in, out;
  std::vector<float> x, w, bias, other;
};

TEST(FewPositions, AnImageHasTheSameBitsAloneAndAmongMany) {
  for (const ConvShape& s : kAlone) {
    const AloneCase c(s);
    SCOPED_TRACE(testing::Message() << s.ic << " x " << s.h << " x " << s.w << " to " << s.oc << ", " << s.kh);
    Context context(bestIsa(), 1);
    std::vector<float> all(AloneCase::kImages * c.out);
    c.forward(context, 0, AloneCase::kImages, all.data());
    for (const size_t first : {size_t{0}, size_t{37}})
      for (const int n : {1, 3}) {
        const size_t count = c.out * static_cast<size_t>(n);
        const auto some =
            sameBits<float>("alone", count, NAN, [&](Context& k, float* y) { c.forward(k, first, n, y); });
        EXPECT_EQ(std::memcmp(all.data() + first * c.out, some.data(), count * sizeof(float)), 0) << n << " of them";
      }
  }
}

TEST(FewPositions, FrozenWeightsGiveTheSameBits) {
  for (const ConvShape& s : kAlone) {
    const AloneCase c(s);
    Context plain(bestIsa(), 2), kept(bestIsa(), 2);
    const FrozenWeights frozen(kept);
    std::vector<float> want(3 * c.out), got(3 * c.out);
    for (const int n : {1, 3, 1}) {  // each has a packing of its own
      c.forward(plain, 5, n, want.data());
      for (int twice = 0; twice < 2; ++twice) c.forward(kept, 5, n, got.data());
      EXPECT_EQ(want, got);
    }
  }
}

// Who prepares inputs follows from the second cache and the threads, the bits do not.
TEST(FewPositions, CachesOfAnySizeGiveTheSameBits) {
  for (const ConvShape& s : kAlone) {
    const AloneCase c(s);
    std::vector<float> want(c.out), got(c.out);
    Context alone(bestIsa(), 1);
    c.forward(alone, 3, 1, want.data());
    for (const int threads : {1, 2, 5})
      for (const size_t cache : {size_t{1} << 10, size_t{1} << 17, size_t{1} << 24}) {
        Context context(bestIsa(), threads);
        context.scratch().secondCache = cache;
        c.forward(context, 3, 1, got.data());
        EXPECT_EQ(want, got) << threads << " threads, " << s.ic << " x " << s.h << " x " << s.w << " to " << s.oc;
      }
  }
}

TEST(FewPositions, IsNearDoubleLoops) {
  for (const ConvShape& s : kAlone) {
    const AloneCase c(s);
    const auto x = wide(c.x), w = wide(c.w), bias = wide(c.bias);
    const auto xm = magnitudes(x), wm = magnitudes(w), bm = magnitudes(bias);
    std::vector<double> want(c.out), scale(c.out);
    ref::convForward(s, x.data(), w.data(), bias.data(), want.data());
    ref::convForward(s, xm.data(), wm.data(), bm.data(), scale.data());
    near("forward",
         sameBits<float>("forward", c.out, NAN,
                         [&](Context& k, float* y) { convForward(k, s, c.x.data(), c.w.data(), c.bias.data(), y); }),
         want, scale);
  }
}

}  // namespace
}  // namespace crema::kernels
