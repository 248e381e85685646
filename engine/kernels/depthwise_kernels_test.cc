// Convolutions with a filter for each channel against double loops, forward and backward.
#include "support/conv_cases.h"

namespace crema::kernels {
namespace {

// As many groups as channels: vector/conv_depthwise.h.
TEST(Convolution, AFilterForEachChannel) {
  for (const ConvCase& c :
       {ConvCase{"stride 2", {2, 5, 13, 12, 5, 3, 3, 2, 2, 1, 1, 1, 1, 5}},
        {"rows in strips", {1, 2, 70, 61, 2, 5, 3, 1, 1, 2, 1, 1, 1, 2}},
        {"rows in strips, stride 2", {1, 2, 97, 90, 2, 3, 3, 2, 2, 1, 1, 1, 1, 2}},
        {"dilated", {2, 3, 15, 17, 3, 3, 3, 1, 1, 2, 2, 2, 2, 3}},
        {"dilated and strided", {2, 3, 15, 17, 3, 3, 3, 2, 2, 2, 2, 2, 2, 3}},
        {"stride over kernel", {1, 4, 9, 11, 4, 2, 2, 3, 3, 0, 0, 1, 1, 4}},
        {"unequal strides", {1, 3, 14, 29, 3, 7, 2, 1, 3, 5, 1, 1, 1, 3}},
        {"pad over kernel", {1, 2, 5, 5, 2, 3, 3, 1, 1, 4, 4, 1, 1, 2}},
        {"stride 2, no padding", {2, 3, 12, 15, 3, 3, 3, 2, 2, 0, 0, 1, 1, 3}},
        {"four rows and one more, several vectors", {1, 2, 9, 53, 2, 3, 3, 1, 1, 0, 1, 1, 1, 2}},
        {"in place with 64 vectors of 16, copied with 8", {1, 2, 5, 700, 2, 3, 3, 1, 1, 1, 1, 1, 1, 2}},
        {"the same with stride 2", {2, 3, 8, 701, 3, 3, 3, 2, 2, 1, 1, 1, 1, 3}},
        {"stride 2, pad over kernel", {2, 3, 6, 19, 3, 3, 3, 2, 2, 4, 5, 1, 1, 3}},
        {"stride 2, what no window reads", {2, 3, 10, 24, 3, 3, 3, 2, 2, 0, 0, 1, 1, 3}},
        {"stride 2, vectors of padding", {1, 2, 6, 19, 2, 3, 3, 2, 2, 1, 17, 1, 1, 2}},
        {"stride 2, more of them", {1, 2, 6, 19, 2, 3, 3, 2, 2, 1, 33, 1, 1, 2}},
        {"stride 2, no padding, a vector inside", {1, 2, 9, 67, 2, 3, 3, 2, 2, 0, 0, 1, 1, 2}},
        {"stride 2, a pad of two", {2, 3, 7, 70, 3, 3, 3, 2, 2, 2, 2, 1, 1, 3}},
        {"stride 2, the last output ends outside", {2, 3, 9, 31, 3, 3, 3, 2, 2, 1, 1, 1, 1, 3}},
        {"the same, two vectors", {1, 2, 9, 63, 2, 3, 3, 2, 2, 1, 1, 1, 1, 2}},
        {"stride 2, mobilenet's", {1, 2, 15, 112, 2, 3, 3, 2, 2, 1, 1, 1, 1, 2}},
        {"one vector", {2, 3, 9, 16, 3, 3, 3, 1, 1, 1, 1, 1, 1, 3}},
        {"two vectors", {2, 3, 9, 32, 3, 3, 3, 1, 1, 1, 1, 1, 1, 3}},
        {"a vector and one output", {2, 3, 9, 17, 3, 3, 3, 1, 1, 1, 1, 1, 1, 3}},
        {"two vectors and one output", {2, 3, 9, 33, 3, 3, 3, 1, 1, 1, 1, 1, 1, 3}},
        {"half a vector and one output", {2, 3, 9, 9, 3, 3, 3, 1, 1, 1, 1, 1, 1, 3}},
        {"wider than rows that are read in place", {1, 2, 5, 1100, 2, 3, 3, 1, 1, 1, 1, 1, 1, 2}},
        {"small planes", {5, 37, 7, 7, 37, 3, 3, 1, 1, 1, 1, 1, 1, 37}}})
    checkConv(c);
}

// What no window reads, no sum does: 0 times what is no number is none.
TEST(Convolution, GradientsMeetOnlyWhatWindowsRead) {
  const ConvShape s{1, 2, 10, 24, 2, 3, 3, 2, 2, 0, 0, 1, 1, 2};  // its windows read columns 0 to 22, rows 0 to 8
  auto x = numbers(static_cast<size_t>(s.ic) * s.h * s.w, 1);
  const auto dy = numbers(static_cast<size_t>(s.oc) * s.oh() * s.ow(), 2);
  for (size_t i = 0; i < x.size(); ++i)
    if (i % 24 == 23 || i / 24 % 10 == 9) x[i] = NAN;
  for (const float v : sameBits(
           "weights", 18, NAN, [&](Context&k, float*to) { convBackwardWeights(k, s, x.data(), dy.data(), to, false); }))
    EXPECT_TRUE(std::isfinite(v));
}

// Sums over a plane of any shape round as short ones: equal terms, whose sum is known, err most in long chains.
TEST(Convolution, GradientsOfTallPlanesAreAsExactAsThoseOfSmallOnes) {
  for (const int columns : {1, 4, 16, 512}) {
    const int rows = 300000 / columns;
    const ConvShape s{1, 2, rows, columns, 2, 3, 3, 1, 1, 1, 1, 1, 1, 2};
    const size_t count = static_cast<size_t>(2) * rows * columns;
    const std::vector<float> x(count, 0.1f), dy(count, 0.7f);
    const auto dw = sameBits("weights", 18, NAN,
                             [&](Context& k, float* to) { convBackwardWeights(k, s, x.data(), dy.data(), to, false); });
    for (const size_t centre : {4u, 13u}) {
      const double want = 0.1f * static_cast<double>(0.7f) * rows * columns;
      EXPECT_NEAR(dw[centre] / want, 1, 5e-6) << columns << " columns";
    }
  }
}

}  // namespace
}  // namespace crema::kernels
