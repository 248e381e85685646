#include "support/conformance.h"

namespace crema::conformance {
namespace {

// The channel of element i in a blob of outer x channels x inner.
size_t at(size_t i, int channels, int inner) { return i / static_cast<size_t>(inner) % static_cast<size_t>(channels); }

LAYER_CASES(Scale) {
  const auto learnt = [](int channels, int inner) {
    return [=](const auto& x, const auto& p) {
      Values y = x[0];
      for (size_t i = 0; i < y.size(); ++i) {
        y[i] *= p[0][at(i, channels, inner)];
        if (p.size() > 1) y[i] += p[1][at(i, channels, inner)];
      }
      return std::vector<Values>{y};
    };
  };
  const std::string filled = "filler { type: 'gaussian' } ",
                    biased = filled + "bias_term: true bias_filler { type: 'uniform' min: -2 } ";
  s.add("type: 'Scale' scale_param { " + filled + "}", {{3, 5, 2, 3}}).formula = learnt(5, 6);
  s.add("type: 'Scale' scale_param { " + biased + "}", {{3, 17, 11}}).formula = learnt(17, 11);
  s.add("type: 'Scale' scale_param { num_axes: 2 " + biased + "}", {{3, 5, 2, 3}}).formula = learnt(10, 3);
  s.add("type: 'Scale' scale_param { axis: -2 num_axes: -1 " + filled + "}", {{3, 5, 2, 3}}).formula = learnt(6, 1);
  s.add("type: 'Scale' scale_param { num_axes: 0 " + biased + "}", {{3, 5}}).formula = learnt(1, 15);
  Case& all = s.add("type: 'Scale' scale_param { axis: 0 num_axes: -1 " + filled + "}", {{3, 5}});
  all.formula = learnt(15, 1), all.otherBatch = false;
  s.add("type: 'Scale' scale_param { bias_term: true }", {{3, 5}}).naive = [](const auto& x) { return x[0]; };
  const auto given = [](int channels, int inner) {
    return [=](const auto& x, const auto& p) {
      Values y = x[0];
      for (size_t i = 0; i < y.size(); ++i) {
        y[i] *= x[1][at(i, channels, inner)];
        if (!p.empty()) y[i] += p[0][at(i, channels, inner)];
      }
      return std::vector<Values>{y};
    };
  };
  for (const std::string& options : {std::string(), "scale_param { " + biased + "}"}) {
    Case& channels = s.add("type: 'Scale' " + options, {{3, 5, 2}, {5}});
    channels.formula = given(5, 2), channels.otherBatch = false;
    s.add("type: 'Scale' " + options, {{3, 5, 2}, Shape{}}).formula = given(1, 30);
  }
  s.add("type: 'Scale' scale_param { axis: 0 }", {{3, 5, 2}, {3, 5}}).formula = given(15, 2);
  s.add("type: 'Scale' scale_param { axis: 0 }", {{3, 5}, {3, 5}}).formula = given(15, 1);
  s.bad("type: 'Scale' scale_param { num_axes: 3 }", {{3, 5, 2}}, "extends past bottom[0]'s shape");
  s.bad("type: 'Scale' scale_param { axis: 4 }", {{3, 5, 2}}, "axis");
  s.bad("type: 'Scale'", {{3, 5, 2}, {4}}, "dimension mismatch: Scale's numbers are 4, bottom 0 is 3x5x2");
  s.bad("type: 'Scale'", {{3, 5}, {5}, {5}}, "takes 1 to 2 bottom blob(s), here are 3");
}

}  // namespace
}  // namespace crema::conformance
