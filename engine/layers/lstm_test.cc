#include <cmath>

#include "support/conformance.h"

namespace crema::conformance {
namespace {

// T x N x I in, H hidden; S static inputs; start: h and c of each stream, or none. Gives h of all steps, the last h and
// c.
std::vector<Values> lstm(size_t T, size_t N, size_t I, size_t H, size_t S, const std::vector<Values>& x,
                         const std::vector<Values>& p, const std::vector<Values>& start) {
  const Values &wx = p[0], &b = p[1], &wh = p[S ? 3 : 2];
  Values h = start.empty() ? Values(N * H, 0.0) : start[0], c = start.empty() ? h : start[1], out;
  const auto squash = [](double a) { return 1 / (1 + std::exp(-a)); };
  for (size_t t = 0; t < T; ++t) {
    const Values before = h;
    for (size_t n = 0; n < N; ++n) {
      const double cont = x[1][t * N + n];
      for (size_t k = 0; k < H; ++k) {
        double a[4];
        for (size_t gate = 0; gate < 4; ++gate) {
          const size_t row = gate * H + k;
          a[gate] = b[row];
          for (size_t i = 0; i < I; ++i) a[gate] += wx[row * I + i] * x[0][(t * N + n) * I + i];
          for (size_t i = 0; i < S; ++i) a[gate] += p[2][row * S + i] * x[2][n * S + i];
          for (size_t i = 0; i < H; ++i) a[gate] += wh[row * H + i] * cont * before[n * H + i];
        }
        c[n * H + k] = cont * squash(a[1]) * c[n * H + k] + squash(a[0]) * std::tanh(a[3]);
        h[n * H + k] = squash(a[2]) * std::tanh(c[n * H + k]);
      }
    }
    out.insert(out.end(), h.begin(), h.end());
  }
  return {out, h, c};
}

LAYER_CASES(LSTM) {
  // cont: 0 in the first row, so that no state passes from one pass to the next.
  const auto cont = [](size_t bottom, int k, double u) {
    return bottom != 1 ? 2 * u - 1 : static_cast<double>(k >= 3 && u > 0.3);
  };
  const std::string described =
      "type: 'LSTM' recurrent_param { num_output: 3 weight_filler { type: 'gaussian' std: 0.8 } bias_filler { type: "
      "'uniform' min: -1 max: 1 } ";
  Case& plain = s.add(described + "}", {{4, 2, 5}, {4, 2}});
  plain.input = cont;
  plain.formula = [](const auto& x, const auto& p) { return std::vector<Values>{lstm(4, 2, 5, 3, 0, x, p, {})[0]}; };
  Case& still = s.add(described + "}", {{3, 2, 2, 2}, {3, 2}, {2, 4}});
  still.input = cont, still.otherBatch = false;  // axis 0 is time in some bottoms, streams in another
  still.formula = [](const auto& x, const auto& p) { return std::vector<Values>{lstm(3, 2, 4, 3, 4, x, p, {})[0]}; };
  const auto parts = [](size_t bottom, int, double u) { return bottom == 1 ? u : 2 * u - 1; };
  for (const bool fixed : {false, true}) {  // states are inputs here, and cont may be anything
    std::vector<Shape> bottoms = {{3, 2, 4}, {3, 2}, {1, 2, 3}, {1, 2, 3}};
    if (fixed) bottoms[3] = {2, 3}, bottoms.insert(bottoms.begin() + 2, Shape{2, 5});
    Case& exposed = s.add(described + "expose_hidden: true } top: 'h' top: 'hT' top: 'cT'", bottoms);
    exposed.input = parts, exposed.gradientTops = 1, exposed.otherBatch = false;
    exposed.formula = [fixed](const auto& x, const auto& p) {
      return lstm(3, 2, 4, 3, fixed ? 5 : 0, x, p, {x[x.size() - 2], x.back()});
    };
  }
  s.bad("type: 'LSTM' recurrent_param { }", {{2, 3, 4}, {2, 3}}, "num_output must be given");
  const std::string two = "type: 'LSTM' recurrent_param { num_output: 2 }";
  s.bad(two, {{2, 3}, {2, 3}}, "must be steps x streams x inputs");
  s.bad(two, {{2, 3, 4}, {3, 2}}, "(cont) must be 2x3");
  s.bad(two, {{2, 3, 4}, {2, 3}, {4, 1}}, "must be 3 streams");
  s.bad("type: 'LSTM' recurrent_param { num_output: 2 expose_hidden: true }", {{2, 3, 4}, {2, 3}},
        "takes 4 to 5 bottom blob(s), here are 2");
  s.bad("type: 'LSTM' recurrent_param { num_output: 2 expose_hidden: true } top: 'h' top: 'a' top: 'b'",
        {{2, 3, 4}, {2, 3}, {1, 3, 2}, {1, 2, 3}}, "must be 1x3x2, not 1x2x3");
}

}  // namespace
}  // namespace crema::conformance
