#include <gtest/gtest.h>

#include "support/conformance.h"
#include "support/message_of.h"

namespace crema::conformance {
namespace {

LAYER_CASES(Threshold) {
  s.add("type: 'Threshold'", {{4, 9}}).naive = elementwise([](double x) { return x > 0 ? 1 : 0; });
  Case& c = s.add("type: 'Threshold' threshold_param { threshold: 0.5 }", {{5}});
  c.input = [](size_t, int k, double) { return 0.25 * k; };  // 0.5 itself is not above it
  c.naive = elementwise([](double x) { return x > 0.5 ? 1 : 0; });
}

TEST(Threshold, HasNoGradientAndSaysSo) {
  Case c;
  c.description = "type: 'Threshold'", c.bottoms = {{5}};
  Bench b(c, DType::kFloat32);
  b.forward();
  const std::string said = test::messageOf([&] { b.backward({true}); });
  EXPECT_NE(said.find("Threshold has no gradient"), std::string::npos) << said;
}

}  // namespace
}  // namespace crema::conformance
