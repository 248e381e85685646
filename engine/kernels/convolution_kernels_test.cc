// Convolution against double loops, forward and backward.
#include "support/conv_cases.h"

namespace crema::kernels {
namespace {

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
                            {"3x3 strided, many channels", {2, 20, 13, 14, 24, 3, 3, 2, 2, 1, 1}},
                            {"3x3 strided along one axis, many channels", {2, 20, 13, 14, 24, 3, 3, 1, 2, 1, 1}},
                            {"3x3 dilated, many channels", {2, 20, 13, 14, 24, 3, 3, 1, 1, 2, 2, 2, 2}},
                            {"3x3 dilated along one axis, many channels", {2, 20, 13, 14, 24, 3, 3, 1, 1, 2, 1, 2, 1}},
                            {"3x3 strided, many channels in groups", {3, 40, 12, 9, 48, 3, 3, 2, 2, 1, 1, 1, 1, 2}},
                            {"5x5 strided, many channels", {2, 34, 19, 18, 40, 5, 5, 2, 2, 2, 2}},
                            {"5x5 dilated, many channels", {2, 34, 19, 18, 40, 5, 5, 1, 1, 4, 4, 2, 2}},
                            {"one column of two", {2, 5, 1, 1, 6, 3, 3, 2, 2, 1, 1}},
                            {"dilated along one axis", {2, 3, 12, 12, 4, 3, 2, 1, 1, 1, 0, 3, 1}},
                            {"depthwise", {2, 12, 10, 10, 12, 3, 3, 1, 1, 1, 1, 1, 1, 12}},
                            {"wide kernel", {1, 2, 9, 30, 3, 1, 13, 1, 1, 0, 6}},
                            {"7x7 stride 1", {2, 2, 12, 12, 5, 7, 7, 1, 1, 3, 3}},
                            {"pad over kernel", {1, 2, 5, 5, 3, 3, 3, 1, 1, 4, 4}},
                            {"filtered, pad of the kernel", {2, 16, 8, 9, 17, 3, 3, 1, 1, 3, 3}},
                            {"filtered, pad over kernel", {1, 18, 9, 7, 16, 3, 3, 1, 1, 4, 5}},
                            {"15 rows", {1, 3, 8, 8, 15, 3, 3}},
                            {"33 rows, 17 wide", {1, 3, 19, 17, 33, 3, 3, 1, 1, 1, 1}},
                            {"many images", {37, 2, 7, 7, 5, 3, 3, 1, 1, 1, 1}},
                            {"many weights", {9, 64, 5, 5, 520, 8, 8, 1, 1, 2, 2}}})
    checkConv(c);
}

// 1 x 1 kernels, whose panels are packed side by side.
TEST(Convolution, OneTap) {
  for (const ConvCase& c : {ConvCase{"many panels, pieces and rows", {2, 300, 17, 19, 90, 1, 1}},
                            {"more rows than meet at once", {1, 140, 12, 12, 131, 1, 1}},
                            {"panels over several images", {5, 260, 7, 7, 50, 1, 1}},
                            {"more outputs than inputs", {3, 32, 9, 11, 100, 1, 1}},
                            {"more outputs than inputs, in groups", {11, 62, 5, 5, 132, 1, 1, 1, 1, 0, 0, 1, 1, 2}},
                            {"strided, in groups", {2, 40, 15, 14, 72, 1, 1, 2, 2, 0, 0, 1, 1, 2}}})
    checkConv(c);
}

// Stride 1 and little padding, for which the gradient of the input is computed by taps (conv_backward_taps.h).
TEST(Convolution, OutputsMuchSmallerThanInputs) {
  for (const ConvCase& c :
       {ConvCase{"groups, dilated, padded along one axis", {5, 6, 9, 11, 4, 3, 3, 1, 1, 0, 1, 2, 1, 2}},
        {"channels in several parts", {3, 45, 6, 6, 24, 5, 5}},
        {"wider than a vector", {2, 3, 8, 43, 4, 5, 9}},
        {"several images a unit, one left", {17, 2, 7, 7, 5, 3, 3}},
        {"kernel too wide", {1, 2, 3, 40, 3, 1, 19}}})
    checkConv(c);
}

// Square kernels of three or five taps and enough channels, which are computed by minimal filtering (vector/winograd.h).
TEST(Convolution, TilesOfMinimalFiltering) {
  for (const ConvCase& c :
       {ConvCase{"groups, unequal padding", {3, 34, 9, 12, 38, 3, 3, 1, 1, 2, 0, 1, 1, 2}},
        {"channels in several pieces", {2, 150, 6, 7, 20, 3, 3, 1, 1, 1, 1}},
        {"several images a unit, one left", {13, 16, 7, 7, 33, 3, 3, 1, 1, 1, 1}},
        {"strips of an image", {1, 16, 80, 75, 17, 3, 3, 1, 1, 1, 1}},
        {"smallest", {2, 16, 2, 2, 16, 3, 3, 1, 1, 1, 1}},
        {"one row of tiles", {5, 20, 4, 23, 16, 3, 3}},
        {"5x5 in groups", {3, 96, 13, 15, 194, 5, 5, 1, 1, 2, 2, 1, 1, 2}},
        {"5x5, unequal padding", {4, 49, 9, 12, 97, 5, 5, 1, 1, 4, 1}},
        {"5x5, few channels", {2, 16, 7, 7, 16, 5, 5, 1, 1, 2, 2}},
        {"5x5, sums too large to lie side by side, pieces in turn", {3, 96, 27, 27, 96, 5, 5, 1, 1, 2, 2}},
        {"3x3, the same", {2, 128, 28, 56, 96, 3, 3, 1, 1, 1, 1}},
        {"5x5, eight tiles a row", {3, 17, 16, 16, 20, 5, 5, 1, 1, 2, 2}},
        {"3x3, 32 tiles a row", {1, 18, 9, 64, 16, 3, 3, 1, 1, 1, 1}},
        {"5x5 of LeNet", {5, 20, 12, 12, 50, 5, 5}},
        {"5x5, strips of an image", {1, 32, 40, 40, 32, 5, 5, 1, 1, 2, 2}},
        {"5x5 without padding", {2, 49, 15, 14, 97, 5, 5}}})
    checkConv(c);
}

// The same with little padding, where the gradient of the input goes over tiles of the output (vector/conv_winograd_spread.h).
TEST(Convolution, TilesThatAreSpreadOverTheInput) {
  for (const ConvCase& c : {ConvCase{"3x3 in groups", {3, 34, 11, 9, 38, 3, 3, 1, 1, 0, 0, 1, 1, 2}},
                            {"channels in several pieces, more rows than meet at once", {2, 140, 8, 8, 150, 3, 3}},
                            {"wider than a vector", {1, 16, 6, 75, 17, 3, 3}},
                            {"several images a unit, one left", {17, 16, 6, 6, 16, 3, 3}},
                            {"3x3, padded along one axis", {2, 16, 6, 6, 20, 3, 3, 1, 1, 0, 1}},
                            {"5x5, one odd column of padding", {2, 16, 12, 12, 20, 5, 5, 1, 1, 0, 1}},
                            {"5x5, three", {2, 16, 10, 12, 17, 5, 5, 1, 1, 0, 3}},
                            {"one tile an image", {17, 16, 4, 4, 16, 3, 3}},
                            {"5x5, unequal padding", {3, 18, 12, 13, 20, 5, 5, 1, 1, 1, 0}},
                            {"5x5, several panels an image", {2, 16, 24, 23, 19, 5, 5}}})
    checkConv(c);
}

// A product has the magnitude 1/4 on average: a double loop over magnitudes would take seconds here.
TEST(Convolution, MoreTilesSideBySideThan16BitsHold) {
  const ConvShape s{1, 16, 4, 131'076, 16, 3, 3};
  const size_t in = static_cast<size_t>(s.ic) * s.h * s.w, out = static_cast<size_t>(s.oc) * s.oh() * s.ow(),
               weights = 16 * 16 * 9;
  const auto x = numbers(in, 1), w = numbers(weights, 2), dy = numbers(out, 4);
  const auto xd = wide(x), wd = wide(w), dyd = wide(dy);
  std::vector<double> y(out), dx(in), dw(weights);
  ref::convForward(s, xd.data(), wd.data(), static_cast<const double*>(nullptr), y.data());
  ref::convBackwardData(s, dyd.data(), wd.data(), dx.data());
  ref::convBackwardWeights(s, xd.data(), dyd.data(), dw.data(), false);
  const auto check = [](const char* what, const std::vector<double>& want, size_t products, const auto& kernel) {
    const std::vector<double> magnitude(want.size(), 0.25 * static_cast<double>(products));
    near(what, sameBits(what, want.size(), NAN, kernel, Ways::Few), want, magnitude);
  };
  check("forward", y, 16 * 9,
        [&](Context& k, float* to) { convForward<float>(k, s, x.data(), w.data(), nullptr, to); });
  check("back to data", dx, 16 * 9, [&](Context& k, float* to) { convBackwardData(k, s, dy.data(), w.data(), to); });
  check("weights", dw, out / 16,
        [&](Context& k, float* to) { convBackwardWeights(k, s, x.data(), dy.data(), to, false); });
}

// What is no number stays within the windows of its tile: nothing else of its image, or of others beside it, has it.
TEST(Convolution, NoNumberIsSpreadFurtherThanItsTile) {
  const ConvShape s{3, 16, 12, 12, 20, 5, 5};
  auto dy = numbers(static_cast<size_t>(s.n) * s.oc * 64, 1);
  const auto w = numbers(static_cast<size_t>(s.oc) * s.ic * 25, 2);
  dy[((1 * 20 + 7) * 8 + 2) * 8 + 5] = NAN;  // tile (1, 2) of the second image, which sees rows 2 to 7, columns 4 to 9
  const auto dx = sameBits("back to data", static_cast<size_t>(s.n) * s.ic * 144, 0,
                           [&](Context& k, float* to) { convBackwardData(k, s, dy.data(), w.data(), to); });
  for (size_t i = 0; i < dx.size(); ++i) {
    const size_t image = i / 144 / 16, row = i % 144 / 12, column = i % 12;
    const bool seen = image == 1 && row >= 2 && row < 8 && column >= 4 && column < 10;
    const bool reached = seen && row < 7 && column >= 5;  // by the number itself, in whatever order
    if (reached || !seen) {
      ASSERT_EQ(std::isnan(dx[i]), reached) << i;
    }
  }
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

// Impulse response: one input pixel of value 1 gives each output that it reaches the one weight between them. Groups,
// strides, padding, dilation and unequal sides all differ.
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

}  // namespace
}  // namespace crema::kernels
