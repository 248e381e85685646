#include <gtest/gtest.h>

#include "support/conformance.h"
#include "support/message_of.h"

namespace crema::conformance {
namespace {

LAYER_CASES(Accuracy) {
  Case& two = s.add("type: 'Accuracy' accuracy_param { top_k: 2 }", {{6, 5}, {6}});
  two.classes = 5, two.smooth = false;
  two.naive = [](const auto& x) {
    int hits = 0;
    for (size_t n = 0; n < 6; ++n) {
      int ahead = 0;
      const auto label = static_cast<size_t>(x[1][n]);
      for (size_t c = 0; c < 5; ++c) ahead += c != label && x[0][n * 5 + c] >= x[0][n * 5 + label];
      hits += ahead < 2;
    }
    return Values{hits / 6.0};
  };
}

TEST(Accuracy, CountsTiesAgainst) {
  Case c;
  c.description = "type: 'Accuracy'", c.bottoms = {{2, 3}, {2}}, c.classes = 3;
  Bench b(c, DType::kFloat32);
  for (int i = 0; i < 6; ++i) Bench::set(*b.bottoms()[0], i, 1.0);  // all equal
  b.forward();
  EXPECT_EQ(b.topData(0)[0], 0);
}

TEST(Accuracy, LabelsOutsideTheClassesAreRefused) {
  for (const char* type : {"type: 'SoftmaxWithLoss'", "type: 'Accuracy'"}) {
    Case c;
    c.description = type, c.bottoms = {{2, 3}, {2}}, c.classes = 3;
    Bench b(c, DType::kFloat32);
    Bench::set(*b.bottoms()[1], 1, 7);
    const std::string said = test::messageOf([&] { b.forward(); });
    EXPECT_NE(said.find("label 7 of item 1 is not a class"), std::string::npos) << said;
  }
}

}  // namespace
}  // namespace crema::conformance
