// Inner product, pooling and LRN against double loops.
#include "support/kernel_bits.h"

namespace crema::kernels {
namespace {

void checkIp(IpShape s) {
  SCOPED_TRACE(testing::Message() << s.n << " x " << s.in << " -> " << s.out << (s.transposed ? " transposed" : ""));
  const auto x = numbers(static_cast<size_t>(s.n) * s.in, 1), w = numbers(static_cast<size_t>(s.in) * s.out, 2),
             b = numbers(static_cast<size_t>(s.out), 3), dy = numbers(static_cast<size_t>(s.n) * s.out, 4);
  const auto xd = wide(x), wd = wide(w), bd = wide(b), dyd = wide(dy);
  const auto xm = magnitudes(xd), wm = magnitudes(wd), bm = magnitudes(bd), dym = magnitudes(dyd);
  std::vector<double> want(dy.size()), scale(dy.size());
  ref::ipForward(s, xd.data(), wd.data(), bd.data(), want.data());
  ref::ipForward(s, xm.data(), wm.data(), bm.data(), scale.data());
  near("forward",
       sameBits("forward", dy.size(), NAN,
                [&](Context& k, float* y) { ipForward(k, s, x.data(), w.data(), b.data(), y); }),
       want, scale);
  want.resize(x.size()), scale.resize(x.size());
  ref::ipBackwardData(s, dyd.data(), wd.data(), want.data());
  ref::ipBackwardData(s, dym.data(), wm.data(), scale.data());
  near("back to data",
       sameBits("back to data", x.size(), NAN,
                [&](Context& k, float* dx) { ipBackwardData(k, s, dy.data(), w.data(), dx); }),
       want, scale);
  for (bool accumulate : {false, true}) {
    want.assign(w.size(), 0.5), scale.assign(w.size(), 0.5);
    ref::ipBackwardWeights(s, xd.data(), dyd.data(), want.data(), accumulate);
    ref::ipBackwardWeights(s, xm.data(), dym.data(), scale.data(), accumulate);
    near("weights",
         sameBits("weights", w.size(), 0.5f,
                  [&](Context& k, float* dw) { ipBackwardWeights(k, s, x.data(), dy.data(), dw, accumulate); }),
         want, scale);
  }
}

TEST(InnerProduct, Shapes) {
  for (IpShape s : {IpShape{1, 1, 1},
                    {64, 800, 500},
                    {64, 500, 10},
                    {3, 7, 13},
                    {33, 17, 15},
                    {31, 300, 29},
                    {10, 300, 50},
                    {1, 300, 50},
                    {1, 1100, 1003},
                    {1, 256, 40},
                    {5, 257, 100},
                    {100, 64, 64}}) {
    checkIp(s);
    s.transposed = true;
    checkIp(s);
  }
}

// Small batches are computed another way.
TEST(InnerProduct, AnItemHasItsBitsInABatchOfAnySize) {
  const int in = 301, out = 50, most = 40;
  const auto x = numbers(size_t{most} * in, 1), w = numbers(size_t{in} * out, 2), b = numbers(out, 3);
  for (const bool transposed : {false, true}) {
    const auto of = [&](int n) {
      const IpShape s{n, in, out, transposed};
      return sameBits("forward", static_cast<size_t>(n) * out, NAN,
                      [&](Context& k, float* y) { ipForward(k, s, x.data(), w.data(), b.data(), y); });
    };
    const auto all = of(most);
    for (const int n : {1, 2, 6, 7, 14, 15, 32, 33}) {
      const auto some = of(n);
      EXPECT_EQ(std::memcmp(some.data(), all.data(), some.size() * sizeof(float)), 0) << n;
    }
  }
}

void checkPositive(PoolShape s, const std::vector<float>& x, std::vector<int32_t> want) {
  const int outputs = s.oh * s.ow;
  for (int i = 0; i < s.n * s.c * outputs; ++i) {
    int32_t& at = want[static_cast<size_t>(i)];
    if (at >= 0 && !(x[static_cast<size_t>(i / outputs * s.h * s.w + at)] > 0)) at = -1;
  }
  s.positive = true;
  sameBits("max alone", want.size(), NAN, [&](Context& k, float* y) {
    std::vector<int32_t> m(want.size(), -7);
    maxPoolForward(k, s, x.data(), y, m.data());
    EXPECT_EQ(m, want);
  });
}

void checkPool(PoolShape s) {
  SCOPED_TRACE(testing::Message() << s.n * s.c << " planes " << s.h << "x" << s.w << " kernel " << s.kh << "x" << s.kw
                                  << " stride " << s.strideH << " pad " << s.padH);
  const size_t in = static_cast<size_t>(s.n) * s.c * s.h * s.w, out = static_cast<size_t>(s.n) * s.c * s.oh * s.ow;
  auto x = numbers(in, 1);
  for (size_t i = 0; i < in; i += 3) x[i] = 0.5f;                                      // ties: the first one wins
  for (size_t i = 0; i < in / 2; ++i) x[i] = i % 4 ? std::min(0.f, x[i] - 1.f) : 0.f;  // windows with nothing above 0
  const auto dy = numbers(out, 2);
  const Surrounded xs(x), dys(dy);
  std::vector<float> want(out), back(in);
  std::vector<int32_t> mask(out);
  ref::maxPoolForward(s, x.data(), want.data(), mask.data());
  ref::maxPoolBackward(s, dy.data(), mask.data(), back.data());
  checkPositive(s, x, mask);
  EXPECT_EQ(sameBits("max", out, NAN,
                     [&](Context& k, float* y) {
                       std::vector<int32_t> m(out, -7);
                       maxPoolForward(k, s, xs.data(), y, m.data());
                       EXPECT_EQ(m, mask);
                     }),
            want);
  EXPECT_EQ(sameBits("max alone", out, NAN, [&](Context& k, float* y) { maxPoolForward(k, s, xs.data(), y, nullptr); }),
            want);
  EXPECT_EQ(
      sameBits("max back", in, NAN, [&](Context& k, float* dx) { maxPoolBackward(k, s, dys.data(), mask.data(), dx); }),
      back);
  ref::avePoolForward(s, x.data(), want.data());
  const auto wantD = wide(want), ones = std::vector<double>(out, 1.0);
  near("average", sameBits("average", out, NAN, [&](Context& k, float* y) { avePoolForward(k, s, xs.data(), y); }),
       wantD, ones);
  ref::avePoolBackward(s, dy.data(), back.data());
  near("average back",
       sameBits("average back", in, NAN, [&](Context& k, float* dx) { avePoolBackward(k, s, dys.data(), dx); }),
       wide(back), std::vector<double>(in, 1.0));
}

TEST(Pooling, Shapes) {
  // n, c, h, w, oh, ow, kh, kw, strides, pads
  for (const PoolShape& s : {PoolShape{2, 20, 24, 24, 12, 12, 2, 2, 2, 2},
                             {3, 7, 8, 8, 4, 4, 2, 2, 2, 2},
                             {1, 5, 16, 40, 8, 20, 2, 2, 2, 2},
                             {1, 3, 4, 64, 2, 32, 2, 2, 2, 2},
                             {2, 3, 8, 12, 4, 6, 2, 2, 2, 2},
                             {1, 2, 6, 80, 3, 40, 2, 2, 2, 2},
                             {1, 17, 32, 32, 16, 16, 3, 3, 2, 2},
                             {3, 5, 8, 8, 4, 4, 3, 3, 2, 2},
                             {1, 1, 5, 5, 5, 5, 3, 3, 1, 1, 1, 1},
                             {2, 3, 7, 9, 4, 9, 3, 5, 2, 1, 1, 2},
                             {1, 16, 1, 1, 1, 1, 1, 1},
                             {1, 33, 6, 6, 1, 1, 6, 6},
                             {1, 2, 4, 4, 3, 3, 3, 3, 2, 2, 1, 1},
                             {1, 3, 30, 37, 30, 37, 3, 3, 1, 1, 1, 1},
                             {1, 2, 33, 70, 17, 35, 3, 3, 2, 2, 1, 1},
                             {2, 2, 14, 14, 13, 13, 2, 2, 1, 1},
                             {1, 3, 9, 11, 4, 11, 4, 3, 2, 1, 1, 1},
                             {1, 2, 3, 2, 2, 2, 3, 3, 2, 1, 2, 2},
                             {1, 1, 3, 700, 2, 350, 2, 2, 2, 2},
                             {1, 2, 5, 700, 5, 700, 3, 3, 1, 1, 1, 1},
                             {1, 1, 3, 1100, 2, 550, 2, 2, 2, 2},
                             {1, 2, 5, 16, 5, 16, 3, 3, 1, 1, 1, 1},
                             {1, 2, 5, 17, 5, 17, 3, 3, 1, 1, 1, 1},
                             {1, 2, 5, 32, 5, 32, 3, 3, 1, 1, 1, 1},
                             {1, 2, 5, 33, 5, 33, 3, 3, 1, 1, 1, 1},
                             {1, 16, 120, 40, 60, 20, 2, 2, 2, 2}})
    checkPool(s);
}

TEST(Pooling, WhatIsNoNumberIsTheMaximumWhereItIsFirst) {
  for (const PoolShape& s : {PoolShape{1, 3, 20, 19, 20, 19, 3, 3, 1, 1, 1, 1},
                             {1, 3, 20, 19, 10, 10, 3, 3, 2, 2, 1, 1},
                             {1, 3, 20, 19, 10, 10, 2, 2, 2, 2},
                             {1, 3, 8, 24, 4, 12, 2, 2, 2, 2},
                             {1, 3, 20, 19, 7, 7, 3, 3, 3, 3}}) {
    auto x = numbers(static_cast<size_t>(s.c * s.h * s.w), 3);
    for (size_t i = 0; i < x.size(); i += 5) x[i] = i % 2 ? NAN : -INFINITY;
    const size_t out = static_cast<size_t>(s.c * s.oh * s.ow);
    std::vector<float> want(out);
    std::vector<int32_t> mask(out);
    ref::maxPoolForward(s, x.data(), want.data(), mask.data());
    const auto got = sameBits("max", out, 0, [&](Context& k, float* y) {
      std::vector<int32_t> m(out, -7);
      maxPoolForward(k, s, x.data(), y, m.data());
      EXPECT_EQ(m, mask);
    });
    EXPECT_EQ(std::memcmp(got.data(), want.data(), out * sizeof(float)), 0);
    const auto alone =
        sameBits("max alone", out, 0, [&](Context& k, float* y) { maxPoolForward(k, s, x.data(), y, nullptr); });
    EXPECT_EQ(std::memcmp(alone.data(), want.data(), out * sizeof(float)), 0);
    checkPositive(s, x, mask);
  }
}

TEST(Pooling, EmptyWindowsGiveZero) {  // kernel 1, stride 2 on 4 pixels with ceil: the third window lies outside
  const PoolShape s{1, 1, 4, 4, 3, 3, 1, 1, 2, 2};
  const std::vector<float> x(16, 1.f);
  std::vector<float> y(9, NAN);
  std::vector<int32_t> mask(9);
  Context k(bestIsa(), 1);
  maxPoolForward(k, s, x.data(), y.data(), mask.data());
  EXPECT_EQ(y[8], 0.f);
  EXPECT_EQ(mask[8], -1);
  avePoolForward(k, s, x.data(), y.data());
  EXPECT_EQ(y[8], 0.f);
}

TEST(Pooling,
     AverageDivisorCountsPadding) {  // 4x4 ones, kernel 3, stride 2, pad 1: corner 4/9, right edge 2/6, far corner 1/4
  const PoolShape s{1, 1, 4, 4, 3, 3, 3, 3, 2, 2, 1, 1};
  const std::vector<float> x(16, 1.f);
  std::vector<float> y(9);
  Context k(bestIsa(), 1);
  avePoolForward(k, s, x.data(), y.data());
  EXPECT_FLOAT_EQ(y[0], 4.f / 9);
  EXPECT_FLOAT_EQ(y[2], 2.f / 6);
  EXPECT_FLOAT_EQ(y[8], 1.f / 4);
}

// Scales from nothing to what a float cannot hold, several of them in a vector.
TEST(Lrn, ScalesOfAnySize) {
  const LrnShape s{1, 5, 37, 3, 0.7, 0.75, 1e-30};
  const float sizes[] = {0, 1e-25f, 1e-10f, 1e-3f, 1, 2.5f, 7, 30, 1e12f, 3e15f};
  const size_t count = static_cast<size_t>(s.c * s.hw);
  auto x = numbers(count, 1);
  for (size_t i = 0; i < count; ++i) x[i] *= sizes[i % static_cast<size_t>(s.hw) % std::size(sizes)];
  const auto xd = wide(x);
  const std::vector<double> want = ref::lrnValues(s, xd.data()).y;
  const auto got = sameBits("lrn", count, NAN, [&](Context& k, float* y) { lrnForward<float>(k, s, x.data(), y); });
  for (size_t i = 0; i < count; ++i) EXPECT_NEAR(got[i], want[i], 2e-6 * std::fabs(want[i])) << i << ": " << x[i];
  x[40] = NAN, x[50] = INFINITY;
  const auto none = sameBits("lrn", count, 0, [&](Context& k, float* y) { lrnForward<float>(k, s, x.data(), y); });
  EXPECT_TRUE(std::isnan(none[40]) && std::isnan(none[50]));
  EXPECT_EQ(none[41], got[41]);
}

TEST(Lrn, AgainstDoubleLoops) {
  for (const LrnShape& s : {LrnShape{2, 7, 30, 5, 0.1, 0.75, 1},
                            {1, 2, 17, 5, 1.1, 0.75, 2},
                            {1, 9, 16, 3, 0.5, 0.75, 1},
                            {1, 6, 5, 7, 0.3, 0.6, 1}}) {
    const size_t count = static_cast<size_t>(s.n) * s.c * s.hw;
    const auto x = numbers(count, 1), dy = numbers(count, 2);
    const auto xd = wide(x), dyd = wide(dy);
    std::vector<double> dx(count);
    ref::lrnBackward(s, xd.data(), dyd.data(), dx.data());
    const std::vector<double> four(count, 4.0);
    near("lrn", sameBits("lrn", count, NAN, [&](Context& k, float* out) { lrnForward(k, s, x.data(), out); }),
         ref::lrnValues(s, xd.data()).y, four);
    near("lrn back",
         sameBits("lrn back", count, NAN, [&](Context& k, float* out) { lrnBackward(k, s, x.data(), dy.data(), out); }),
         dx, four);
  }
}

TEST(Lrn, WithinAPlaneAgainstDoubleLoops) {
  for (const LrnWithinShape& s : {LrnWithinShape{2, 3, 16, 16, 3, 0.5, 0.75},
                                  {1, 2, 7, 19, 5, 2.5, 0.75},
                                  {1, 3, 1, 33, 3, 0.5, 0.75},
                                  {3, 1, 5, 2, 9, 1.5, 0.75},
                                  {3, 5, 8, 8, 3, 0.5, 0.75},
                                  {2, 2, 37, 13, 7, 0.5, 0.75},
                                  {1, 2, 150, 130, 5, 0.5, 0.75},
                                  {1, 2, 3, 418, 837, 0.5, 0.75},
                                  {2, 1, 2, 1, 3, 0.5, 0.75},
                                  {1, 2, 6, 5, 3, 0.3, 0.6}}) {
    const size_t count = static_cast<size_t>(s.n) * s.c * s.h * s.w;
    const auto x = numbers(count, 1), dy = numbers(count, 2);
    const auto xd = wide(x), dyd = wide(dy);
    std::vector<double> scale(count), y(count), dx(count);
    ref::lrnWithinForward(s, xd.data(), scale.data(), y.data());
    ref::lrnWithinBackward(s, xd.data(), scale.data(), dyd.data(), dx.data());
    std::vector<float> scaleF(count);
    const std::vector<double> four(count, 4.0);
    near("lrn",
         sameBits("lrn", count, NAN,
                  [&](Context& k, float* out) { lrnWithinForward(k, s, x.data(), scaleF.data(), out); }),
         y, four);
    near("scale",
         sameBits(
             "scale", count, NAN,
             [&](Context& k, float* out) { lrnWithinForward(k, s, x.data(), out, std::vector<float>(count).data()); }),
         scale, four);
    sameBits("without scales", count, NAN,
             [&](Context& k, float* out) { lrnWithinForward<float>(k, s, x.data(), nullptr, out); });
    near("lrn back",
         sameBits("lrn back", count, NAN,
                  [&](Context& k, float* out) { lrnWithinBackward(k, s, x.data(), scaleF.data(), dy.data(), out); }),
         dx, four);
  }
}

}  // namespace
}  // namespace crema::kernels
