#include "support/conformance.h"

namespace crema::conformance {
namespace {

// The channel of element i in a blob of outer x channels x inner.
size_t at(size_t i, int channels, int inner) { return i / static_cast<size_t>(inner) % static_cast<size_t>(channels); }

LAYER_CASES(Bias) {
  const auto learnt = [](int channels, int inner) {
    return [=](const auto& x, const auto& p) {
      Values y = x[0];
      for (size_t i = 0; i < y.size(); ++i) y[i] += p[0][at(i, channels, inner)];
      return std::vector<Values>{y};
    };
  };
  const std::string filled = "filler { type: 'gaussian' } ";
  s.add("type: 'Bias' bias_param { " + filled + "}", {{3, 5, 2, 3}}).formula = learnt(5, 6);
  s.add("type: 'Bias' bias_param { num_axes: 2 " + filled + "}", {{3, 5, 2, 3}}).formula = learnt(10, 3);
  s.add("type: 'Bias' bias_param { axis: -2 num_axes: -1 " + filled + "}", {{3, 5, 2, 3}}).formula = learnt(6, 1);
  s.add("type: 'Bias' bias_param { num_axes: 0 " + filled + "}", {{3, 5}}).formula = learnt(1, 15);
  Case& all = s.add("type: 'Bias' bias_param { axis: 0 num_axes: -1 " + filled + "}", {{3, 5}});
  all.formula = learnt(15, 1), all.otherBatch = false;
  s.add("type: 'Bias'", {{3, 5}}).naive = [](const auto& x) { return x[0]; };
  const auto given = [](int channels, int inner) {
    return [=](const auto& x) {
      Values y = x[0];
      for (size_t i = 0; i < y.size(); ++i) y[i] += x[1][at(i, channels, inner)];
      return y;
    };
  };
  Case& channels = s.add("type: 'Bias'", {{3, 5, 2}, {5}});
  channels.naive = given(5, 2), channels.otherBatch = false;
  s.add("type: 'Bias' bias_param { axis: 0 }", {{3, 5, 2}, {3, 5}}).naive = given(15, 2);
  s.add("type: 'Bias'", {{3, 5, 2}, Shape{}}).naive = given(1, 30);
  s.bad("type: 'Bias' bias_param { num_axes: 3 }", {{3, 5, 2}}, "extends past bottom[0]'s shape");
  s.bad("type: 'Bias' bias_param { num_axes: 2147483647 }", {{3, 5, 2}}, "extends past bottom[0]'s shape");
  s.bad("type: 'Bias' bias_param { num_axes: -2 }", {{3, 5, 2}}, "num_axes must be -1");
  s.bad("type: 'Bias'", {{3, 5, 2}, {4}}, "dimension mismatch: Bias's numbers are 4, bottom 0 is 3x5x2");
  s.bad("type: 'Bias'", {{3, 5}, {5, 1}}, "dimension mismatch");
}

}  // namespace
}  // namespace crema::conformance
