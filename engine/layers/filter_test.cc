#include <gtest/gtest.h>

#include <cmath>

#include "support/conformance.h"
#include "support/message_of.h"

namespace crema::conformance {
namespace {

const auto kEveryThird = [](size_t bottom, int k, double u) {
  return bottom == 2 ? (k % 3 == 0 ? 0 : u + 0.1) : 2 * u - 1;
};

LAYER_CASES(Filter) {
  Case& two = s.add("type: 'Filter' top: 'a' top: 'b'", {{5, 3, 2}, {5}, {5, 1, 1}});
  two.input = kEveryThird;
  two.formula = [](const auto& x, const auto&) {
    std::vector<Values> tops(2);
    for (const size_t n : {1, 2, 4}) {
      for (size_t k = 0; k < 6; ++k) tops[0].push_back(x[0][n * 6 + k]);
      tops[1].push_back(x[1][n]);
    }
    return tops;
  };
  s.bad("type: 'Filter'", {{5, 2}, {5}, {5}}, "3 bottoms need 2 tops, here are 1");
  s.bad("type: 'Filter'", {{5, 2}, {5, 2}}, "one number per item");
  s.bad("type: 'Filter'", {{4, 2}, {5}}, "same 0th dimension as the selector: bottom 0 is 4x2");
}

TEST(Filter, TheBatchIsWholeBeforeTheFirstPassAndMayBecomeEmpty) {
  Case c;
  c.description = "type: 'Filter'", c.bottoms = {{3, 2}, {3}};
  c.input = [](size_t bottom, int, double u) { return bottom ? 0 : u; };
  Bench b(c, DType::kFloat32);
  EXPECT_EQ(b.tops()[0]->shape().brief(), "3x2");
  b.forward();
  EXPECT_EQ(b.tops()[0]->shape().brief(), "0x2");
  b.bottoms()[0]->fillDiff(5);
  b.backward({true, false});
  for (int i = 0; i < 6; ++i) EXPECT_EQ(b.bottoms()[0]->diffAt(i), 0);
  Bench::set(*b.bottoms()[1], 2, -1);
  b.forward();
  EXPECT_EQ(b.topData(0), (Values{b.bottoms()[0]->dataAt(4), b.bottoms()[0]->dataAt(5)}));
  Bench::set(*b.bottoms()[1], 1, std::nan(""));
  EXPECT_NE(test::messageOf([&] { b.forward(); }).find("the selector of item 1 is not a number"), std::string::npos);
}

}  // namespace
}  // namespace crema::conformance
