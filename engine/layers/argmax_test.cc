#include <gtest/gtest.h>

#include <cmath>

#include "support/conformance.h"

namespace crema::conformance {
namespace {

const auto kSteps = [](size_t, int, double u) { return std::floor(u * 4); };  // many ties

// The k best of x[first + i * stride], the larger index first among equals.
std::vector<std::pair<double, int>> best(const Values& x, size_t first, size_t stride, int count, int k) {
  std::vector<std::pair<double, int>> all;
  for (int i = 0; i < count; ++i) all.push_back({x[first + static_cast<size_t>(i) * stride], i});
  std::sort(all.rbegin(), all.rend());
  all.resize(static_cast<size_t>(k));
  return all;
}

LAYER_CASES(ArgMax) {
  for (const bool values : {false, true}) {
    const std::string out = values ? " out_max_val: true" : "";
    Case& flat = s.add("type: 'ArgMax' argmax_param { top_k: 3" + out + " }", {{4, 2, 5}});
    flat.smooth = false, flat.input = kSteps;
    flat.naive = [values](const auto& x) {
      Values y;
      for (size_t n = 0; n < 4; ++n) {
        const auto b = best(x[0], n * 10, 1, 10, 3);
        for (const auto& [v, i] : b) y.push_back(i);
        for (const auto& [v, i] : b)
          if (values) y.push_back(v);
      }
      return y;
    };
    Case& axis = s.add("type: 'ArgMax' argmax_param { axis: -2 top_k: 2" + out + " }", {{3, 5, 2}});
    axis.smooth = false, axis.input = kSteps;
    axis.naive = [values](const auto& x) {
      Values y(12);
      for (size_t n = 0; n < 3; ++n)
        for (size_t j = 0; j < 2; ++j)
          for (size_t k = 0; k < 2; ++k) {
            const auto b = best(x[0], n * 10 + j, 2, 5, 2)[k];
            y[n * 4 + k * 2 + j] = values ? b.first : b.second;
          }
      return y;
    };
  }
  s.bad("type: 'ArgMax' argmax_param { top_k: 7 }", {{2, 3, 2}}, "top_k 7 must be less than or equal to the 6");
  s.bad("type: 'ArgMax' argmax_param { top_k: 0 }", {{2, 3}}, "top k must not be less than 1");
  s.bad("type: 'ArgMax' argmax_param { axis: 2 }", {{2, 3}}, "axis 2 is out of range");
}

TEST(ArgMax, ShapesAreCaffesAndNanIsLast) {
  const struct {
    const char* options;
    Shape from, to;
  } cases[] = {{"", {2, 3}, {2, 1, 1}},
               {"out_max_val: true top_k: 2", {2, 3, 2, 2}, {2, 2, 2, 1}},
               {"axis: 1 top_k: 2", {2, 3, 4}, {2, 2, 4}}};
  for (const auto& c : cases) {
    Case one;
    one.description = std::string("type: 'ArgMax' argmax_param { ") + c.options + " }", one.bottoms = {c.from};
    EXPECT_EQ(Bench(one, DType::kFloat32).tops()[0]->shape().brief(), c.to.brief()) << c.options;
  }
  Case one;
  one.description = "type: 'ArgMax' argmax_param { top_k: 3 }", one.bottoms = {{1, 3}};
  Bench b(one, DType::kFloat32);
  for (int i = 0; i < 3; ++i) Bench::set(*b.bottoms()[0], i, i == 1 ? std::nan("") : i);
  b.forward();
  EXPECT_EQ(b.topData(0), (Values{2, 0, 1}));
}

}  // namespace
}  // namespace crema::conformance
