#include <gtest/gtest.h>

#include <cmath>

#include "support/conformance.h"
#include "support/message_of.h"

namespace crema::conformance {
namespace {

LAYER_CASES(HingeLoss) {
  for (const bool squared : {false, true}) {
    Case& c = s.add(std::string("type: 'HingeLoss' hinge_loss_param { norm: ") + (squared ? "L2" : "L1") + " }",
                    {{7, 2, 3}, {7}});
    c.input = [](size_t bottom, int, double u) {
      return bottom ? std::floor(u * 6) : 6 * u - 3;
    };  // margins of 0 among them
    c.naive = [squared](const auto& x) {
      double sum = 0;
      for (size_t n = 0; n < 7; ++n)
        for (size_t k = 0; k < 6; ++k) {
          const double t = k == static_cast<size_t>(x[1][n]) ? 1 : -1, m = std::max(0.0, 1 - t * x[0][n * 6 + k]);
          sum += squared ? m * m : m;
        }
      return Values{sum / 7};
    };
  }
  s.bad("type: 'HingeLoss'", {{4, 3}, {3}}, "3 labels for 4 predictions");
}

TEST(HingeLoss, LabelsOutsideTheClassesAreRefused) {
  for (const char* type : {"type: 'HingeLoss'", "type: 'MultinomialLogisticLoss'", "type: 'InfogainLoss'"}) {
    Case c;
    c.description = type, c.bottoms = {{2, 3}, {2}}, c.classes = 3;
    if (c.description.find("Infogain") != std::string::npos) c.bottoms.push_back({3, 3});
    Bench b(c, DType::kFloat32);
    for (const double label : {3.0, -1.0, std::nan("")}) {
      Bench::set(*b.bottoms()[1], 1, label);
      const std::string said = test::messageOf([&] { b.forward(); });
      EXPECT_NE(said.find("of item 1 is not a class"), std::string::npos) << type << said;
    }
  }
}

}  // namespace
}  // namespace crema::conformance
