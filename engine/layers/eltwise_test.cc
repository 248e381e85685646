#include <gtest/gtest.h>

#include <cmath>

#include "support/conformance.h"

namespace crema::conformance {
namespace {

LAYER_CASES(Eltwise) {
  const auto each = [](double (*join)(const Values& x)) {
    return [=](const std::vector<Values>& x) {
      Values y;
      for (size_t i = 0; i < x[0].size(); ++i) {
        Values here;
        for (const Values& bottom : x) here.push_back(bottom[i]);
        y.push_back(join(here));
      }
      return y;
    };
  };
  const std::vector<Shape> two = {{3, 5}, {3, 5}}, three = {{2, 3, 2}, {2, 3, 2}, {2, 3, 2}};
  s.add("type: 'Eltwise'", two).naive = each([](const Values& x) { return x[0] + x[1]; });
  s.add("type: 'Eltwise' eltwise_param { coeff: -1 coeff: 0.5 coeff: 2 }", three).naive =
      each([](const Values& x) { return -x[0] + 0.5 * x[1] + 2 * x[2]; });
  s.add("type: 'Eltwise' eltwise_param { operation: PROD }", two).naive =
      each([](const Values& x) { return x[0] * x[1]; });
  for (const char* stable : {"true", "false"})
    s.add(std::string("type: 'Eltwise' eltwise_param { operation: PROD stable_prod_grad: ") + stable + " }", three)
        .naive = each([](const Values& x) { return x[0] * x[1] * x[2]; });
  Case& zeros =
      s.add("type: 'Eltwise' eltwise_param { operation: PROD stable_prod_grad: false }", three);  // NaN in Caffe
  zeros.input = [](size_t, int k, double u) { return k % 2 ? u : 0; };
  s.add("type: 'Eltwise' eltwise_param { operation: MAX }", two).naive =
      each([](const Values& x) { return std::max(x[0], x[1]); });
  s.add("type: 'Eltwise' eltwise_param { operation: MAX }", three).naive = each([](const Values& x) {
    return std::max({x[0], x[1], x[2]});
  });
  s.bad("type: 'Eltwise'", {{3}}, "takes at least 2 bottom blob(s), here are 1");
  s.bad("type: 'Eltwise'", {{3}, {3}, {1, 3}}, "bottom[0] is 3, bottom[2] is 1x3");
  s.bad("type: 'Eltwise' eltwise_param { coeff: 1 }", two, "takes one coefficient per bottom blob: 1 coeff, 2 bottoms");
  s.bad("type: 'Eltwise' eltwise_param { operation: PROD coeff: 1 coeff: 2 }", two,
        "only takes coefficients for summation");
}

TEST(Eltwise, MaxKeepsNaNWhereverItStands) {
  Case c;
  c.description = "type: 'Eltwise' eltwise_param { operation: MAX }", c.bottoms = {{3}, {3}, {3}};
  c.input = [](size_t bottom, int k, double) { return bottom == static_cast<size_t>(k) ? NAN : 1.0; };
  Bench b(c, DType::kFloat32);
  b.forward();
  for (const double y : b.topData(0)) EXPECT_TRUE(std::isnan(y));
}

TEST(Eltwise, MaxHandsTiesOutAsCaffeDoes) {
  Case c;
  c.description = "type: 'Eltwise' eltwise_param { operation: MAX }", c.bottoms = {{1}, {1}, {1}};
  c.input = [](size_t, int, double) { return 0.5; };
  Bench b(c, DType::kFloat32);
  b.forward();
  b.tops()[0]->fillDiff(4);
  b.backward();
  EXPECT_EQ(b.bottoms()[0]->diffAt(0), 0);
  EXPECT_EQ(b.bottoms()[1]->diffAt(0), 4);
  EXPECT_EQ(b.bottoms()[2]->diffAt(0), 0);
}

}  // namespace
}  // namespace crema::conformance
