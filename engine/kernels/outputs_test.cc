// What becomes of a convolution's outputs: steps on them, and how they are stored.
#include "support/kernel_bits.h"

namespace crema::kernels {
namespace {

// What layers compute with kernels of their own, a convolution has as steps, with the same bits: for panels that are one
// row of the output or many, groups, left-out kernel rows, and units that threads share.
TEST(Convolution, StepsGiveTheBitsOfKernelsOneAfterTheOther) {
  for (const ConvShape& s :
       {ConvShape{2, 4, 9, 9, 8, 3, 3, 1, 1, 1, 1}, ConvShape{17, 6, 7, 7, 20, 1, 1},
        ConvShape{3, 3, 32, 32, 96, 5, 5, 2, 2, 2, 2}, ConvShape{1, 8, 13, 13, 10, 3, 3, 1, 1, 0, 0, 1, 1, 2},
        ConvShape{2, 19, 9, 21, 19, 3, 3, 1, 1, 1, 1, 1, 1, 19}, ConvShape{1, 3, 15, 80, 3, 3, 3, 2, 2, 1, 1, 1, 1, 3},
        ConvShape{2, 140, 12, 12, 131, 1, 1}, ConvShape{3, 32, 9, 13, 34, 3, 3, 1, 1, 1, 1, 1, 1, 2},
        ConvShape{5, 24, 11, 13, 34, 5, 5, 1, 1, 2, 2}, ConvShape{3, 3, 32, 32, 48, 5, 5, 1, 1, 2, 2},
        ConvShape{2, 3, 7, 700, 3, 3, 3, 1, 1, 1, 1, 1, 1, 3}}) {
    const int plane = s.oh() * s.ow();
    const size_t out = static_cast<size_t>(s.n) * s.oc * plane, channels = static_cast<size_t>(s.oc);
    const auto x = numbers(static_cast<size_t>(s.n) * s.ic * s.h * s.w, 1), other = numbers(out, 3),
               y2 = numbers(out, 5);
    const auto w = numbers(channels * s.ic / s.groups * s.kh * s.kw, 2);
    const auto some = numbers(3 * channels, 4);
    const std::vector<double> shift(some.begin(), some.begin() + s.oc), factor(some.begin() + s.oc, some.end() - s.oc),
        offset(some.end() - s.oc, some.end());
    using S = Step<float>;
    const float *const shifts = some.data(), *const factors = shifts + s.oc, *const offsets = factors + s.oc;
    for (const int additions : {0, 1, 2}) {
      Epilogue<float> steps = {{S::kAffine, shifts, factors}, {S::kAffine, nullptr, factors, offsets}};
      for (int i = 0; i < additions; ++i) steps.push_back({.kind = S::kAdd, .other = i ? y2.data() : other.data()});
      steps.push_back({.kind = S::kRelu, .slope = 0.25f});
      std::vector<float> first;
      for (const Isa* isa : isasHere())
        for (int threads : {1, 2, 3}) {
          Context k(*isa, threads);
          std::vector<float> want(out), got(out);
          convForward<float>(k, s, x.data(), w.data(), nullptr, want.data());
          channelAffine<float>(k, {s.n, s.oc, plane}, want.data(), shift.data(), factor.data(), nullptr, want.data());
          channelAffine<float>(k, {s.n, s.oc, plane}, want.data(), nullptr, factor.data(), offset.data(), want.data());
          for (int i = 0; i < additions; ++i)
            add<float>(k, static_cast<int64_t>(out), want.data(), (i ? y2 : other).data(), want.data());
          reluForward<float>(k, static_cast<int64_t>(out), 0.25f, want.data(), want.data());
          convForward<float>(k, s, x.data(), w.data(), nullptr, got.data(), steps);
          ASSERT_EQ(std::memcmp(want.data(), got.data(), out * sizeof(float)), 0)
              << s.ic << " to " << s.oc << ", " << s.kh << " x " << s.kw << ", " << additions << " additions, "
              << isa->name << ", " << threads;
          if (first.empty()) first = got;
          ASSERT_EQ(got, first);
        }
    }
  }
}

// Outputs of 8 MB and more: sameBits() gives one that begins with a line, which passes the caches, and one that does not.
TEST(Convolution, LargeOutputsPassTheCaches) {
  // In the third and fourth, panels with left-out kernel rows begin amid a line, with both widths of vectors. In the fifth
  // sums have two pieces, and pass no cache.
  for (const ConvShape& s :
       {ConvShape{2, 8, 128, 128, 72, 1, 1}, ConvShape{4, 140, 64, 64, 130, 1, 1},
        ConvShape{32, 14, 24, 88, 128, 3, 3, 2, 2, 1, 1}, ConvShape{18, 3, 12, 20, 512, 5, 5, 1, 1, 2, 2},
        ConvShape{32, 17, 24, 88, 128, 3, 3, 2, 2, 1, 1}, ConvShape{8, 3, 128, 128, 64, 3, 3, 2, 2, 1, 1}}) {
    const size_t plane = static_cast<size_t>(s.oh()) * s.ow(), out = static_cast<size_t>(s.n) * s.oc * plane,
                 in = static_cast<size_t>(s.ic) * s.h * s.w;
    const auto x = numbers(s.n * in, 1), w = numbers(static_cast<size_t>(s.oc) * s.ic * s.kh * s.kw, 2);
    const auto got = sameBits("forward", out, NAN,
                              [&](Context& k, float* y) { convForward<float>(k, s, x.data(), w.data(), nullptr, y); });
    ConvShape last = s;
    last.n = 1;
    const auto xd = wide({x.end() - static_cast<ptrdiff_t>(in), x.end()}), wd = wide(w);
    std::vector<double> want(s.oc * plane), scale(want.size());
    ref::convForward<double>(last, xd.data(), wd.data(), nullptr, want.data());
    ref::convForward<double>(last, magnitudes(xd).data(), magnitudes(wd).data(), nullptr, scale.data());
    near("last image", {got.end() - static_cast<ptrdiff_t>(want.size()), got.end()}, want, scale);
  }
}

}  // namespace
}  // namespace crema::kernels
