#include <gtest/gtest.h>

#include <cmath>

#include "support/conformance.h"
#include "support/message_of.h"

namespace crema::conformance {
namespace {

LAYER_CASES(BatchReindex) {
  Case& some = s.add("type: 'BatchReindex'", {{4, 2, 3}, {6}});  // item 3 is never taken
  some.input = [](size_t bottom, int, double u) { return bottom ? std::floor(u * 3) : 2 * u - 1; };
  some.naive = [](const auto& x) {
    Values y;
    for (const double i : x[1])
      for (size_t k = 0; k < 6; ++k) y.push_back(x[0][static_cast<size_t>(i) * 6 + k]);
    return y;
  };
  s.add("type: 'BatchReindex'", {{2, 3}, {0}}).otherBatch = false;
  s.bad("type: 'BatchReindex'", {{2, 3}, {2, 1}}, "a list of item numbers with one axis");
}

TEST(BatchReindex, NumbersOfNoItemAreRefused) {
  Case c;
  c.description = "type: 'BatchReindex'", c.bottoms = {{2, 2}, {3}};
  c.input = [](size_t, int, double) { return 0.0; };
  Bench b(c, DType::kFloat32);
  for (const double index : {2.0, -1.0, std::nan("")}) {
    Bench::set(*b.bottoms()[1], 1, index);
    const std::string said = test::messageOf([&] { b.forward(); });
    EXPECT_NE(said.find("at place 1 is no item of bottom 0: it has 2, 0 to 1"), std::string::npos) << said;
  }
}

}  // namespace
}  // namespace crema::conformance
