// Every kernel against double loops, and its bits against every other way of computing it: instruction set, threads,
// alignment.
#include "kernels/kernels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "base/random.h"
#include "kernels/ref/ref.h"

namespace crema::kernels {
namespace {

std::vector<float> numbers(size_t count, uint64_t seed) {
  RandomKey key;
  key.seed = seed;
  const RandomStream stream(key);
  std::vector<float> v(count);
  for (size_t i = 0; i < count; ++i) v[i] = static_cast<float>(2 * stream.uniform(i) - 1);
  return v;
}

std::vector<double> wide(const std::vector<float>& v) { return {v.begin(), v.end()}; }

// A float buffer at a chosen offset from 64-byte alignment, with sentinels on both sides that must survive.
class Guarded {
 public:
  Guarded(size_t count, int offset, float fill = NAN)
      : storage_(count + 96, kSentinel), begin_(32 + static_cast<size_t>(offset)), count_(count) {
    std::fill_n(data(), count, fill);
  }
  float* data() { return storage_.data() + begin_; }
  std::vector<float> take(const char* what) {
    for (size_t i = 0; i < storage_.size(); ++i)
      if (i < begin_ || i >= begin_ + count_)
        EXPECT_EQ(storage_[i], kSentinel)
            << what << " wrote outside its output, at " << static_cast<long>(i) - static_cast<long>(begin_);
    return {data(), data() + count_};
  }

 private:
  static constexpr float kSentinel = 12345.f;
  std::vector<float> storage_;
  size_t begin_, count_;
};

std::vector<Isa> isas() {
  if (bestIsa() == Isa::kAvx512) return {Isa::kAvx512, Isa::kAvx2};
  std::cout << "SKIPPED PART: this CPU has no AVX-512\n";
  return {Isa::kAvx2};
}

// Runs kernel(context, out) for every instruction set, 1 to 3 threads and two alignments; all bits must agree. Returns
// the result.
template <class Kernel>
std::vector<float> sameBits(const char* what, size_t count, float fill, Kernel kernel) {
  std::vector<float> first;
  for (Isa isa : isas())
    for (int threads : {1, 2, 3})
      for (int offset : {0, 5}) {
        Context context(isa, threads);
        Guarded out(count, offset, fill);
        kernel(context, out.data());
        const auto got = out.take(what);
        if (first.empty()) first = got;
        EXPECT_TRUE(count == 0 || std::memcmp(first.data(), got.data(), count * sizeof(float)) == 0)
            << what << ": bits differ with " << name(isa) << ", " << threads << " threads, offset " << offset;
      }
  return first;
}

// |got - want| within a few units in the last place of the sum of magnitudes.
void near(const char* what, const std::vector<float>& got, const std::vector<double>& want,
          const std::vector<double>& magnitude) {
  double worst = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    const double error = std::fabs(got[i] - want[i]) / (magnitude[i] * 1.2e-7 + 1e-30);
    if (!(error <= worst)) worst = error;
  }
  EXPECT_LT(worst, 64) << what << ": error in ulp of the sum of magnitudes";
}

std::vector<double> magnitudes(const std::vector<double>& v) {
  std::vector<double> m(v);
  for (double& x : m) x = std::fabs(x);
  return m;
}

struct ConvCase {
  const char* name;
  ConvShape s;
};

void checkConv(const ConvCase& c) {
  SCOPED_TRACE(c.name);
  const ConvShape& s = c.s;
  const size_t in = static_cast<size_t>(s.n) * s.ic * s.h * s.w,
               out = static_cast<size_t>(s.n) * s.oc * s.oh() * s.ow(),
               weights = static_cast<size_t>(s.oc) * (s.ic / s.groups) * s.kh * s.kw;
  const auto x = numbers(in, 1), w = numbers(weights, 2), b = numbers(static_cast<size_t>(s.oc), 3),
             dy = numbers(out, 4);
  const auto xd = wide(x), wd = wide(w), bd = wide(b), dyd = wide(dy);
  const auto xm = magnitudes(xd), wm = magnitudes(wd), bm = magnitudes(bd), dym = magnitudes(dyd);
  std::vector<double> want(out), scale(out);
  ref::convForward(s, xd.data(), wd.data(), bd.data(), want.data());
  ref::convForward(s, xm.data(), wm.data(), bm.data(), scale.data());
  near("forward",
       sameBits("forward", out, NAN, [&](Context& k, float* y) { convForward(k, s, x.data(), w.data(), b.data(), y); }),
       want, scale);
  want.resize(in), scale.resize(in);
  ref::convBackwardData(s, dyd.data(), wd.data(), want.data());
  ref::convBackwardData(s, dym.data(), wm.data(), scale.data());
  near("back to data",
       sameBits("back to data", in, NAN,
                [&](Context& k, float* dx) { convBackwardData(k, s, dy.data(), w.data(), dx); }),
       want, scale);
  want.resize(weights), scale.resize(weights);
  for (bool accumulate : {false, true}) {
    std::fill(want.begin(), want.end(), 0.5), std::fill(scale.begin(), scale.end(), 0.5);
    ref::convBackwardWeights(s, xd.data(), dyd.data(), want.data(), accumulate);
    ref::convBackwardWeights(s, xm.data(), dym.data(), scale.data(), accumulate);
    near("weights",
         sameBits("weights", weights, 0.5f,
                  [&](Context& k, float* dw) { convBackwardWeights(k, s, x.data(), dy.data(), dw, accumulate); }),
         want, scale);
  }
  std::vector<double> bias(static_cast<size_t>(s.oc), 0.25), biasScale(static_cast<size_t>(s.oc), 0.25);
  ref::convBackwardBias(s, dyd.data(), bias.data(), true);
  ref::convBackwardBias(s, dym.data(), biasScale.data(), true);
  near(
      "bias",
      sameBits("bias", bias.size(), 0.25f, [&](Context& k, float* db) { convBackwardBias(k, s, dy.data(), db, true); }),
      bias, biasScale);
}

TEST(Convolution, ShapesOfRealNets) {
  // n, ic, h, w, oc, kh, kw, strides, pads, dilations, groups
  for (const ConvCase& c : {ConvCase{"lenet conv1", {5, 1, 28, 28, 20, 5, 5}},
                            {"lenet conv2", {5, 20, 12, 12, 50, 5, 5}},
                            {"cifar conv1", {4, 3, 32, 32, 32, 5, 5, 1, 1, 2, 2}},
                            {"cifar conv2", {4, 32, 16, 16, 32, 5, 5, 1, 1, 2, 2}},
                            {"cifar conv3", {9, 32, 8, 8, 64, 5, 5, 1, 1, 2, 2}},
                            {"alexnet conv1", {1, 3, 67, 67, 32, 11, 11, 4, 4}},
                            {"alexnet conv2", {2, 16, 13, 13, 24, 5, 5, 1, 1, 2, 2, 1, 1, 2}},
                            {"3x3 of 13", {3, 40, 13, 13, 70, 3, 3, 1, 1, 1, 1}},
                            {"1x1", {2, 10, 14, 14, 100, 1, 1}},
                            {"7x7 stride 2", {1, 3, 40, 40, 16, 7, 7, 2, 2, 3, 3}}})
    checkConv(c);
}

TEST(Convolution, OddShapes) {
  for (const ConvCase& c : {ConvCase{"one pixel", {1, 1, 1, 1, 1, 1, 1}},
                            {"kernel is the input", {3, 4, 6, 5, 7, 6, 5}},
                            {"oblong", {2, 6, 15, 23, 12, 4, 5, 2, 3, 0, 1, 1, 1, 3}},
                            {"tall", {2, 3, 33, 2, 5, 5, 1, 1, 1, 2, 0}},
                            {"stride over kernel", {2, 3, 11, 13, 4, 2, 2, 3, 3}},
                            {"stride over kernel 1x1", {2, 5, 9, 9, 3, 1, 1, 2, 2}},
                            {"dilated", {2, 4, 17, 15, 6, 3, 3, 1, 1, 2, 2, 2, 2}},
                            {"dilated and strided", {1, 3, 17, 17, 4, 3, 3, 2, 2, 1, 1, 2, 2}},
                            {"dilated along one axis", {2, 3, 12, 12, 4, 3, 2, 1, 1, 1, 0, 3, 1}},
                            {"depthwise", {2, 12, 10, 10, 12, 3, 3, 1, 1, 1, 1, 1, 1, 12}},
                            {"wide kernel", {1, 2, 9, 30, 3, 1, 13, 1, 1, 0, 6}},
                            {"7x7 stride 1", {2, 2, 12, 12, 5, 7, 7, 1, 1, 3, 3}},
                            {"pad over kernel", {1, 2, 5, 5, 3, 3, 3, 1, 1, 4, 4}},
                            {"15 rows", {1, 3, 8, 8, 15, 3, 3}},
                            {"33 rows, 17 wide", {1, 3, 19, 17, 33, 3, 3, 1, 1, 1, 1}},
                            {"many images", {37, 2, 7, 7, 5, 3, 3, 1, 1, 1, 1}},
                            {"many weights", {9, 64, 5, 5, 520, 8, 8, 1, 1, 2, 2}}})
    checkConv(c);
}

// Unstrided, and so little padding that the way back adds taps.
TEST(Convolution, OutputsMuchSmallerThanInputs) {
  for (const ConvCase& c :
       {ConvCase{"groups, dilated, padded along one axis", {5, 6, 9, 11, 4, 3, 3, 1, 1, 0, 1, 2, 1, 2}},
        {"channels in several parts", {3, 45, 6, 6, 24, 5, 5}},
        {"wider than a vector", {2, 3, 8, 43, 4, 5, 9}},
        {"several images a unit, one left", {17, 2, 7, 7, 5, 3, 3}},
        {"kernel too wide", {1, 2, 3, 40, 3, 1, 19}}})
    checkConv(c);
}

TEST(Convolution, EarlierUseLeavesNoTrace) {
  const ConvShape big{8, 16, 20, 20, 24, 5, 5, 1, 1, 2, 2}, small{3, 2, 7, 7, 5, 3, 3, 1, 1, 1, 1};
  const auto x = numbers(8 * 16 * 400, 1), w = numbers(24 * 16 * 25, 2);
  std::vector<float> y(8 * 24 * 400), fresh(3 * 5 * 49), used(3 * 5 * 49);
  Context a(bestIsa(), 2), b(bestIsa(), 2);
  convForward<float>(a, small, x.data(), w.data(), nullptr, fresh.data());
  convForward<float>(b, big, x.data(), w.data(), nullptr, y.data());
  convForward<float>(b, small, x.data(), w.data(), nullptr, used.data());
  EXPECT_EQ(fresh, used);
}

// Impulse response, worked out from the definition the other way round: one input pixel of value 1 puts, into each
// output it reaches, the one weight that lies between them. Groups, strides, padding, dilation and unequal sides all
// differ.
TEST(Convolution, AnImpulseAnswersWithTheWeights) {
  const ConvShape s{1, 4, 9, 7, 6, 3, 2, 2, 1, 1, 2, 2, 3, 2};
  const auto w = numbers(6 * 2 * 3 * 2, 5);
  Context k(bestIsa(), 2);
  for (int c = 0; c < s.ic; ++c)
    for (int py = 0; py < s.h; ++py)
      for (int px = 0; px < s.w; ++px) {
        std::vector<float> x(static_cast<size_t>(s.ic * s.h * s.w), 0.f);
        x[static_cast<size_t>((c * s.h + py) * s.w + px)] = 1;
        std::vector<float> want(static_cast<size_t>(s.oc * s.oh() * s.ow()), 0.f), got = want, ref = want;
        for (int o = 0; o < s.oc; ++o)
          for (int a = 0; a < s.kh; ++a)
            for (int b = 0; b < s.kw; ++b) {
              const int y = py + s.padH - a * s.dilH, z = px + s.padW - b * s.dilW;
              const bool reaches = o / 3 == c / 2 && y >= 0 && z >= 0 && y % s.strideH == 0 && z % s.strideW == 0 &&
                                   y / s.strideH < s.oh() && z / s.strideW < s.ow();
              if (reaches)
                want[static_cast<size_t>((o * s.oh() + y / s.strideH) * s.ow() + z / s.strideW)] =
                    w[static_cast<size_t>(((o * 2 + c % 2) * s.kh + a) * s.kw + b)];
            }
        convForward(k, s, x.data(), w.data(), static_cast<const float*>(nullptr), got.data());
        ref::convForward(s, x.data(), w.data(), static_cast<const float*>(nullptr), ref.data());
        ASSERT_EQ(got, want);
        ASSERT_EQ(ref, want);
      }
}

TEST(Convolution, ReferenceAgreesWithClosedForm) {  // ones: every output is the number of taps inside the image
  const ConvShape s{1, 2, 4, 4, 1, 3, 3, 1, 1, 1, 1};
  const std::vector<double> x(32, 1.0), w(18, 1.0);
  std::vector<double> y(16);
  ref::convForward<double>(s, x.data(), w.data(), nullptr, y.data());
  EXPECT_EQ(y[0], 8);
  EXPECT_EQ(y[1], 12);
  EXPECT_EQ(y[5], 18);
}

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
                    {5, 257, 100},
                    {100, 64, 64}}) {
    checkIp(s);
    s.transposed = true;
    checkIp(s);
  }
}

void checkPool(PoolShape s) {
  SCOPED_TRACE(testing::Message() << s.n * s.c << " planes " << s.h << "x" << s.w << " kernel " << s.kh << "x" << s.kw
                                  << " stride " << s.strideH << " pad " << s.padH);
  const size_t in = static_cast<size_t>(s.n) * s.c * s.h * s.w, out = static_cast<size_t>(s.n) * s.c * s.oh * s.ow;
  auto x = numbers(in, 1);
  for (size_t i = 0; i < in; i += 3) x[i] = 0.5f;  // ties: the first one wins
  const auto dy = numbers(out, 2);
  std::vector<float> want(out), back(in);
  std::vector<int32_t> mask(out);
  ref::maxPoolForward(s, x.data(), want.data(), mask.data());
  ref::maxPoolBackward(s, dy.data(), mask.data(), back.data());
  EXPECT_EQ(sameBits("max", out, NAN,
                     [&](Context& k, float* y) {
                       std::vector<int32_t> m(out, -7);
                       maxPoolForward(k, s, x.data(), y, m.data());
                       EXPECT_EQ(m, mask);
                     }),
            want);
  EXPECT_EQ(
      sameBits("max back", in, NAN, [&](Context& k, float* dx) { maxPoolBackward(k, s, dy.data(), mask.data(), dx); }),
      back);
  ref::avePoolForward(s, x.data(), want.data());
  const auto wantD = wide(want), ones = std::vector<double>(out, 1.0);
  near("average", sameBits("average", out, NAN, [&](Context& k, float* y) { avePoolForward(k, s, x.data(), y); }),
       wantD, ones);
  ref::avePoolBackward(s, dy.data(), back.data());
  near("average back",
       sameBits("average back", in, NAN, [&](Context& k, float* dx) { avePoolBackward(k, s, dy.data(), dx); }),
       wide(back), std::vector<double>(in, 1.0));
}

TEST(Pooling, Shapes) {
  // n, c, h, w, oh, ow, kh, kw, strides, pads
  for (const PoolShape& s : {PoolShape{2, 20, 24, 24, 12, 12, 2, 2, 2, 2},
                             {1, 17, 32, 32, 16, 16, 3, 3, 2, 2},
                             {3, 5, 8, 8, 4, 4, 3, 3, 2, 2},
                             {1, 1, 5, 5, 5, 5, 3, 3, 1, 1, 1, 1},
                             {2, 3, 7, 9, 4, 9, 3, 5, 2, 1, 1, 2},
                             {1, 16, 1, 1, 1, 1, 1, 1},
                             {1, 33, 6, 6, 1, 1, 6, 6},
                             {1, 2, 4, 4, 3, 3, 3, 3, 2, 2, 1, 1},
                             {1, 16, 120, 40, 60, 20, 2, 2, 2, 2}})
    checkPool(s);
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

TEST(Lrn, AgainstDoubleLoops) {
  for (const LrnShape& s : {LrnShape{2, 7, 30, 5, 0.1, 0.75, 1},
                            {1, 2, 17, 5, 1.1, 0.75, 2},
                            {1, 9, 16, 3, 0.5, 0.75, 1},
                            {1, 6, 5, 7, 0.3, 0.6, 1}}) {
    const size_t count = static_cast<size_t>(s.n) * s.c * s.hw;
    const auto x = numbers(count, 1), dy = numbers(count, 2);
    const auto xd = wide(x), dyd = wide(dy);
    std::vector<double> scale(count), y(count), dx(count);
    ref::lrnForward(s, xd.data(), scale.data(), y.data());
    ref::lrnBackward(s, xd.data(), y.data(), scale.data(), dyd.data(), dx.data());
    std::vector<float> scaleF(count), yF(count);
    const std::vector<double> four(count, 4.0);
    yF = sameBits("lrn", count, NAN, [&](Context& k, float* out) { lrnForward(k, s, x.data(), scaleF.data(), out); });
    near("lrn", yF, y, four);
    near("lrn back",
         sameBits(
             "lrn back", count, NAN,
             [&](Context& k, float* out) { lrnBackward(k, s, x.data(), yF.data(), scaleF.data(), dy.data(), out); }),
         dx, four);
  }
}

TEST(Rows, EveryLengthAroundTheVectorWidth) {
  for (size_t n : {0, 1, 7, 8, 9, 15, 16, 17, 31, 33, 1000, 70001}) {
    const auto a = numbers(n, 1), b = numbers(n, 2);
    const auto count = static_cast<int64_t>(n);
    const auto relu = sameBits("relu", n, NAN, [&](Context& k, float* y) { reluForward(k, count, 0.1f, a.data(), y); });
    const auto back = sameBits("relu back", n, NAN,
                               [&](Context& k, float* y) { reluBackward(k, count, 0.1f, a.data(), b.data(), y); });
    const auto product =
        sameBits("multiply", n, NAN, [&](Context& k, float* y) { multiply(k, count, a.data(), b.data(), y); });
    const auto total = sameBits("add", n, NAN, [&](Context& k, float* y) { add(k, count, a.data(), b.data(), y); });
    for (size_t i = 0; i < n; ++i) {
      EXPECT_EQ(relu[i], a[i] > 0 ? a[i] : 0.1f * a[i]);
      EXPECT_EQ(back[i], a[i] > 0 ? b[i] : 0.1f * b[i]);
      EXPECT_EQ(product[i], a[i] * b[i]);
      EXPECT_EQ(total[i], a[i] + b[i]);
    }
  }
}

// Against the loop in double, from histories as they are after some steps (squares are not negative), w of both signs.
TEST(Rows, UpdatesAreTheirFormulas) {
  const size_t n = 1003;
  const auto count = static_cast<int64_t>(n);
  const auto g = numbers(n, 1), w = numbers(n, 3);
  for (int rule = 0; rule <= static_cast<int>(UpdateRule::kAdam); ++rule)
    for (bool l1 : {false, true}) {
      SCOPED_TRACE(rule);
      const Update u{static_cast<UpdateRule>(rule), 0.01, 0.9, 0.0005, 0.5, l1, 0.99, 1e-3};
      auto h = numbers(n, 2), h2 = numbers(n, 4);
      if (u.rule != UpdateRule::kSgd && u.rule != UpdateRule::kNesterov && u.rule != UpdateRule::kAdam)
        for (float& v : h) v *= v;
      for (float& v : h2) v *= v;
      std::vector<double> hd = wide(h), h2d = wide(h2), wd = wide(w);
      ref::update<double>(count, u, wide(g).data(), hd.data(), h2d.data(), wd.data());
      std::vector<float> history, history2;
      const auto updated = sameBits("update", n, 0.f, [&](Context& k, float* out) {
        history = h, history2 = h2;
        std::copy(w.begin(), w.end(), out);
        update(k, count, u, g.data(), history.data(), history2.data(), out);
      });
      near("weights", updated, wd, std::vector<double>(n, 2.0));
      near("history", history, hd, std::vector<double>(n, 2.0));
      near("second history", history2, h2d, std::vector<double>(n, 2.0));
    }
}

TEST(Reductions, FixedOrderAndClosedForm) {
  for (size_t n : {0, 1, 9, 4095, 4096, 4097, 100000}) {
    const auto a = numbers(n, 5);
    double squares = 0;
    for (float v : a) squares += static_cast<double>(v) * v;
    double first = NAN;
    for (int threads : {1, 2, 3}) {
      Context k(bestIsa(), threads);
      const auto count = static_cast<int64_t>(n);
      if (std::isnan(first)) first = sumOfSquares(k, count, a.data());
      EXPECT_EQ(first, sumOfSquares(k, count, a.data()));
      EXPECT_NEAR(sumOfSquares(k, count, a.data()), squares, 1e-12 * squares);
      EXPECT_NEAR(dot(k, count, a.data(), a.data()), squares, 1e-12 * squares);
    }
  }
}

TEST(Softmax, SumsToOneAndSurvivesLargeInputs) {
  const std::vector<float> x = {1000.f, 1001.f, 999.f, -1000.f, 0.f, 0.f, 0.f, 0.f};
  std::vector<float> y(8);
  Context k(bestIsa(), 1);
  softmax(k, 2, 4, 1, x.data(), y.data());
  const double e = std::exp(-1.0), f = std::exp(-2.0);
  EXPECT_NEAR(y[0], e / (1 + e + f), 1e-7);
  EXPECT_EQ(y[3], 0.f);
  EXPECT_FLOAT_EQ(y[5], 0.25f);
}

TEST(ChooseIsa, RefusesWhatIsUnknown) {
  EXPECT_THROW(chooseIsa("sse9"), Error);
  EXPECT_EQ(chooseIsa(""), bestIsa());
}

}  // namespace
}  // namespace crema::kernels
