// Kernels of norm.h: the bits of the layers one by one, and the values of double loops.
#include "kernels/norm.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "support/kernel_bits.h"

namespace crema::kernels {
namespace {

constexpr ChannelShape kNorms[] = {{2, 3, 7},  {2, 3, 8},     {4, 17, 9}, {1, 64, 49},
                                   {3, 5, 31}, {1, 2, 20000}, {2, 3, 2},  {0, 4, 4}};

struct NormCase {
  NormCase(const ChannelShape& of, bool scaled, bool rectified, bool biased)
      : s(of),
        channels(static_cast<size_t>(s.channels)),
        count(static_cast<size_t>(s.outer) * channels * static_cast<size_t>(s.inner)) {
    steps = {scaled, rectified, scale.data(), biased ? offset.data() : nullptr, 0.25F};
  }
  NormNumbers kept() { return {mean.data(), variance.data(), factor.data()}; }
  ChannelShape s;
  size_t channels, count;
  std::vector<float> x = numbers(count, 1, 3), dy = numbers(count, 2), scale = numbers(channels, 3, 1),
                     offset = numbers(channels, 4);
  std::vector<double> mean = some(), variance = some(), factor = some(), dscale = some(), doffset = some();
  std::vector<double> some() const { return std::vector<double>(channels, 0.0); }
  NormSteps<float> steps;
};

// The layers BatchNorm, Scale and ReLU, forward and backward, by the kernels that they use one by one.
struct OneByOne {
  explicit OneByOne(NormCase& n) : y(n.count), dx(n.count), dscale(n.some()), doffset(n.some()) {
    Context k(bestIsa(), 1);
    const double m = std::max(1.0, double(n.s.outer) * n.s.inner);
    std::vector<double> mean = n.some(), factor = n.some(), g(n.scale.begin(), n.scale.end()),
                        b(n.offset.begin(), n.offset.end());
    channelSums(k, n.s, n.x.data(), mean.data());
    for (double& v : mean) v /= m;
    channelDots(k, n.s, n.x.data(), mean.data(), n.x.data(), mean.data(), factor.data());
    for (double& v : factor) v = 1 / std::sqrt(v / m + 0.5);
    std::vector<float> v(n.count), z;
    channelAffine<float>(k, n.s, n.x.data(), mean.data(), factor.data(), nullptr, v.data());
    z = v;
    if (n.steps.scaled)
      channelAffine<float>(k, n.s, v.data(), nullptr, g.data(), n.steps.offset ? b.data() : nullptr, z.data());
    y = z;
    const auto count = static_cast<int64_t>(n.count);
    if (n.steps.rectified) reluForward(k, count, n.steps.slope, z.data(), y.data());
    std::vector<float> dv = n.dy;
    if (n.steps.rectified) reluBackward(k, count, n.steps.slope, y.data(), n.dy.data(), dv.data());
    if (n.steps.scaled) {
      channelDots<float>(k, n.s, dv.data(), nullptr, v.data(), nullptr, dscale.data());
      channelSums(k, n.s, dv.data(), doffset.data());
      channelAffine<float>(k, n.s, dv.data(), nullptr, g.data(), nullptr, dv.data());
    }
    std::vector<double> ofDv = n.some(), ofBoth = n.some();
    channelSums(k, n.s, dv.data(), ofDv.data());
    channelDots<float>(k, n.s, dv.data(), nullptr, n.x.data(), mean.data(), ofBoth.data());
    for (size_t c = 0; c < n.channels; ++c) {
      const double r = factor[c];
      ofDv[c] /= m, ofBoth[c] *= -r * r / m;
    }
    channelMix<float>(k, n.s, dv.data(), ofDv.data(), n.x.data(), mean.data(), ofBoth.data(), factor.data(), dx.data());
  }
  std::vector<float> y, dx;
  std::vector<double> dscale, doffset;
};

template <class T>
void expectBits(const char* what, const std::vector<T>& want, const std::vector<T>& got) {
  ASSERT_EQ(want.size(), got.size());
  EXPECT_TRUE(want.empty() || std::memcmp(want.data(), got.data(), want.size() * sizeof(T)) == 0) << what;
}

// Outputs of 8 MB and more: sameBits() gives one that begins with a line, which passes the caches, and one that does not.
TEST(Norm, LargeOutputsPassTheCaches) {
  NormCase n({4, 33, 16000}, true, true, true);
  ASSERT_GE(n.count, kStreamed);
  const OneByOne want(n);
  const auto y = sameBits("y", n.count, NAN,
                          [&](Context& k, float* to) { normForward(k, n.s, 0.5, n.x.data(), n.steps, to, n.kept()); });
  expectBits("y", want.y, y);
}

TEST(Norm, GivesTheBitsOfTheLayersOneByOne) {
  for (const ChannelShape& s : kNorms)
    for (int kind = 0; kind < 8; ++kind) {
      NormCase n(s, kind & 1, kind & 2, kind & 4);
      SCOPED_TRACE(testing::Message() << s.outer << " x " << s.channels << " x " << s.inner << ", steps " << kind);
      const OneByOne want(n);
      const NormSums sums = {n.dscale.data(), n.doffset.data()};
      const auto y = sameBits(
          "y", n.count, NAN, [&](Context& k, float* to) { normForward(k, s, 0.5, n.x.data(), n.steps, to, n.kept()); });
      expectBits("y", want.y, y);
      const auto dx = sameBits("dx", n.count, NAN, [&](Context& k, float* to) {
        normBackward(k, s, n.x.data(), n.kept(), n.steps, n.dy.data(), to, sums);
        expectBits("dscale", want.dscale, n.dscale), expectBits("doffset", want.doffset, n.doffset);
      });
      expectBits("dx", want.dx, dx);
      const auto inPlace = sameBits("dx in place", n.count, NAN, [&](Context& k, float* to) {
        std::copy(n.dy.begin(), n.dy.end(), to);
        normBackward<float>(k, s, n.x.data(), n.kept(), n.steps, to, to, sums);
      });
      expectBits("dx in place", want.dx, inPlace);
    }
}

// The reference loops, in double, as the witness.
TEST(Norm, IsNearDoubleLoops) {
  for (const ChannelShape& s : kNorms) {
    NormCase n(s, true, true, true);
    const auto x = wide(n.x), dy = wide(n.dy), scale = wide(n.scale), offset = wide(n.offset);
    std::vector<double> y(n.count), dx(n.count), dscale = n.some(), doffset = n.some();
    const NormSteps<double> steps = {true, true, scale.data(), offset.data(), 0.25};
    ref::normForward(s, 0.5, x.data(), steps, y.data(), n.kept());
    ref::normBackward(s, x.data(), n.kept(), steps, dy.data(), dx.data(), {dscale.data(), doffset.data()});
    const std::vector<double> eight(n.count, 8.0);
    Context k(bestIsa(), 2);
    std::vector<float> got(n.count);
    normForward(k, s, 0.5, n.x.data(), n.steps, got.data(), n.kept());
    near("y", got, y, eight);
    normBackward(k, s, n.x.data(), n.kept(), n.steps, n.dy.data(), got.data(), {n.dscale.data(), n.doffset.data()});
    near("dx", got, dx, eight);
    for (size_t c = 0; c < n.channels; ++c) {
      EXPECT_NEAR(n.dscale[c], dscale[c], 1e-5 * static_cast<double>(s.outer * s.inner));
      EXPECT_NEAR(n.doffset[c], doffset[c], 1e-5 * static_cast<double>(s.outer * s.inner));
    }
  }
}

}  // namespace
}  // namespace crema::kernels
