#include <gtest/gtest.h>

#include "support/conformance.h"

namespace crema::conformance {
namespace {

std::string reshape(const std::string& options) { return "type: 'Reshape' reshape_param { " + options + " }"; }

const auto kSame = [](const auto& x) { return x[0]; };

LAYER_CASES(Reshape) {
  s.add(reshape("shape { dim: 0 dim: -1 }"), {{4, 3, 2}}).naive = kSame;
  s.add(reshape("axis: 1 num_axes: 1 shape { dim: 3 dim: 2 }"), {{2, 6, 5}}).naive = kSame;
  const Shape x{2, 6};
  s.bad(reshape("shape { dim: -1 dim: -1 }"), {x}, "multiple -1 dims");
  s.bad(reshape("shape { dim: 5 dim: -1 }"), {x}, "must be divisible by product of the known dims 5");
  s.bad(reshape("shape { dim: 5 dim: 2 }"), {x}, "output count must match input count: 5x2 has 10 values");
  s.bad(reshape("shape { dim: 0 dim: 0 dim: 0 }"), {x}, "no corresponding bottom axis to copy");
  s.bad(reshape("axis: 3"), {x}, "axis 3 is out of range");
  s.bad(reshape("axis: 1 num_axes: 2"), {x}, "num_axes 2 from axis 1 is out of range");
  s.bad(reshape("axis: 1 num_axes: 2147483647"), {x}, "num_axes 2147483647 from axis 1 is out of range");
  s.bad(reshape("axis: -2147483648"), {x}, "axis -2147483648 is out of range");
  s.bad(reshape("shape { dim: -2 }"), {x}, "neither a size, nor 0, nor -1");
}

TEST(Reshape, ShapesAreCaffes) {
  const struct {
    const char* options;
    Shape from, to;
  } cases[] = {{"shape { dim: 0 dim: 0 dim: 2 dim: -1 }", {2, 3, 8}, {2, 3, 2, 4}},
               {"axis: 1 shape { dim: -1 dim: 2 }", {2, 3, 8}, {2, 12, 2}},
               {"axis: 1 num_axes: 0 shape { dim: 1 }", {2, 3, 8}, {2, 1, 3, 8}},
               {"axis: -1 num_axes: 0 shape { dim: 1 dim: 1 }", {2, 3}, {2, 3, 1, 1}},
               {"axis: -3 num_axes: 1 shape { dim: 3 dim: 0 }", {2, 6, 2}, {2, 3, 2, 2}},
               {"axis: 1 num_axes: 1 shape { }", {2, 1, 3}, {2, 3}}};
  for (const auto& c : cases) {
    Case one;
    one.description = reshape(c.options), one.bottoms = {c.from};
    Bench b(one, DType::kFloat32);
    EXPECT_EQ(b.tops()[0]->shape().brief(), c.to.brief()) << c.options;
  }
}

}  // namespace
}  // namespace crema::conformance
