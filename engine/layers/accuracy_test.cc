#include <gtest/gtest.h>

#include <cmath>

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
  // Per class too, along another axis, some labels ignored; a class without labels has 0.
  Case& each =
      s.add("type: 'Accuracy' accuracy_param { axis: -1 ignore_label: 3 } top: 'all' top: 'each'", {{2, 9, 5}, {2, 9}});
  each.smooth = false;
  each.input = [](size_t bottom, int, double u) { return bottom ? std::floor(u * 4) : u; };  // class 4 does not occur
  each.formula = [](const auto& x, const auto&) {
    Values seen(5, 0.0), right(5, 0.0);
    double all = 0, hits = 0;
    for (size_t n = 0; n < 18; ++n) {
      const auto label = static_cast<size_t>(x[1][n]);
      if (label == 3) continue;
      bool hit = true;
      for (size_t c = 0; c < 5; ++c) hit = hit && (c == label || x[0][n * 5 + c] < x[0][n * 5 + label]);
      ++seen[label], ++all, right[label] += hit, hits += hit;
    }
    for (size_t c = 0; c < 5; ++c) right[c] = seen[c] ? right[c] / seen[c] : 0;
    return std::vector<Values>{{hits / all}, right};
  };
  s.bad("type: 'Accuracy' accuracy_param { top_k: 6 }", {{6, 5}, {6}}, "top_k 6 exceeds the 5 classes");
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
