// Kernels of channels.h against long double loops, and their bits for every instruction set and number of threads.
#include "kernels/channels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "support/kernel_bits.h"

namespace crema::kernels {
namespace {

constexpr ChannelShape kShapes[] = {{1, 1, 1},   {3, 5, 1},    {2, 3, 7},     {2, 3, 8},     {4, 17, 9},
                                    {1, 64, 49}, {2, 40, 196}, {1, 3, 50000}, {33, 100, 31}, {0, 4, 4}};

struct Blobs {
  explicit Blobs(const ChannelShape& s)
      : shape(s), count(static_cast<size_t>(s.outer) * static_cast<size_t>(s.channels * s.inner)) {}
  int channel(size_t i) const { return static_cast<int>(i / static_cast<size_t>(shape.inner)) % shape.channels; }
  ChannelShape shape;
  size_t count;
  std::vector<float> x = numbers<float>(count, 1, 3), y = numbers<float>(count, 2);
  std::vector<double> a = of(3), b = of(4), c = of(5), d = of(6);
  std::vector<double> of(uint64_t seed) const { return numbers<double>(static_cast<size_t>(shape.channels), seed); }
};

TEST(Channels, SumsAreThoseOfLongDoubleLoops) {
  for (const ChannelShape& s : kShapes) {
    const Blobs v(s);
    const auto channels = static_cast<size_t>(s.channels);
    const auto sums =
        sameBits<double>("sums", channels, NAN, [&](Context& c, double* to) { channelSums(c, s, v.x.data(), to); });
    const auto dots = sameBits<double>("dots", channels, NAN, [&](Context& c, double* to) {
      channelDots(c, s, v.x.data(), v.a.data(), v.y.data(), nullptr, to);
    });
    const auto squares = sameBits<double>("squares", channels, NAN, [&](Context& c, double* to) {
      channelDots(c, s, v.x.data(), v.b.data(), v.x.data(), v.b.data(), to);
    });
    std::vector<long double> sum(channels), dot(channels), square(channels);
    for (size_t i = 0; i < v.count; ++i) {
      const auto c = static_cast<size_t>(v.channel(i));
      const long double x = v.x[i], y = v.y[i];
      sum[c] += x, dot[c] += (x - v.a[c]) * y, square[c] += (x - v.b[c]) * (x - v.b[c]);
    }
    for (size_t c = 0; c < channels; ++c) {
      const double most = (s.inner == 1 ? 1e-11 : 2e-7) * static_cast<double>(v.count);  // chains of 16 in float
      EXPECT_NEAR(sums[c], static_cast<double>(sum[c]), most);
      EXPECT_NEAR(dots[c], static_cast<double>(dot[c]), most);
      EXPECT_NEAR(squares[c], static_cast<double>(square[c]), most);
    }
  }
}

TEST(Channels, ElementsAreRoundedOnce) {
  for (const ChannelShape& s : kShapes) {
    const Blobs v(s);
    const auto affine = sameBits<float>("affine", v.count, NAN, [&](Context& c, float* to) {
      channelAffine(c, s, v.x.data(), v.a.data(), v.b.data(), v.c.data(), to);
    });
    const auto factor = sameBits<float>("factor", v.count, NAN, [&](Context& c, float* to) {
      std::copy(v.x.begin(), v.x.end(), to);
      channelAffine(c, s, to, nullptr, v.b.data(), nullptr, to);  // in place
    });
    const auto mix = sameBits<float>("mix", v.count, NAN, [&](Context& c, float* to) {
      channelMix(c, s, v.x.data(), v.d.data(), v.y.data(), v.c.data(), v.b.data(), v.a.data(), to);
    });
    for (size_t i = 0; i < v.count; ++i) {
      const auto c = static_cast<size_t>(v.channel(i));
      const double x = v.x[i], y = v.y[i];
      const auto f = [&](const std::vector<double>& numbers) { return static_cast<float>(numbers[c]); };
      ASSERT_EQ(affine[i], std::fma(v.x[i] - f(v.a), f(v.b), f(v.c)));
      ASSERT_NEAR(affine[i], (x - v.a[c]) * v.b[c] + v.c[c], 1e-6);
      ASSERT_EQ(factor[i], v.x[i] * f(v.b));
      ASSERT_EQ(mix[i], f(v.a) * std::fma(f(v.b), v.y[i] - f(v.c), v.x[i] - f(v.d)));
      ASSERT_NEAR(mix[i], v.a[c] * (x - v.d[c] + v.b[c] * (y - v.c[c])), 1e-6);
    }
  }
}

TEST(Channels, DoublesComeFromTheReference) {
  const ChannelShape s{2, 3, 5};
  Context context(bestIsa(), 1);
  const auto x = numbers<double>(30, 1), y = numbers<double>(30, 2), p = numbers<double>(3, 3);
  std::vector<double> sums(3), dots(3), out(30), mixed(30);
  channelSums(context, s, x.data(), sums.data());
  channelDots<double>(context, s, x.data(), nullptr, y.data(), nullptr, dots.data());
  channelAffine<double>(context, s, x.data(), nullptr, p.data(), nullptr, out.data());
  channelMix(context, s, x.data(), p.data(), y.data(), p.data(), p.data(), p.data(), mixed.data());
  for (size_t c = 0; c < 3; ++c) {
    double sum = 0, dot = 0;
    for (size_t o = 0; o < 2; ++o)
      for (size_t i = 0; i < 5; ++i) {
        const size_t at = (o * 3 + c) * 5 + i;
        sum += x[at], dot += x[at] * y[at];
        EXPECT_DOUBLE_EQ(out[at], x[at] * p[c]);
        EXPECT_NEAR(mixed[at], p[c] * (x[at] - p[c] + p[c] * (y[at] - p[c])), 1e-15);
      }
    EXPECT_NEAR(sums[c], sum, 1e-14);
    EXPECT_NEAR(dots[c], dot, 1e-14);
  }
}

}  // namespace
}  // namespace crema::kernels
