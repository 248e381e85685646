#include <gtest/gtest.h>

#include <cmath>

#include "support/conformance.h"

namespace crema::conformance {
namespace {

// T x N x I in, H hidden; S static inputs; start: H values for each stream, or none. Gives o and the last h.
std::vector<Values> rnn(size_t T, size_t N, size_t I, size_t H, size_t S, const std::vector<Values>& x,
                        const std::vector<Values>& p, const Values& start) {
  const Values &wx = p[0], &b = p[1], &wh = p[S ? 3 : 2], &wo = p[S ? 4 : 3], &bo = p[S ? 5 : 4];
  Values h = start.empty() ? Values(N * H, 0.0) : start, out;
  for (size_t t = 0; t < T; ++t) {
    Values next(N * H);
    for (size_t n = 0; n < N; ++n)
      for (size_t k = 0; k < H; ++k) {
        double sum = b[k];
        for (size_t i = 0; i < I; ++i) sum += wx[k * I + i] * x[0][(t * N + n) * I + i];
        for (size_t i = 0; i < S; ++i) sum += p[2][k * S + i] * x[2][n * S + i];
        for (size_t i = 0; i < H; ++i) sum += wh[k * H + i] * x[1][t * N + n] * h[n * H + i];
        next[n * H + k] = std::tanh(sum);
      }
    h = next;
    for (size_t n = 0; n < N; ++n)
      for (size_t k = 0; k < H; ++k) {
        double sum = bo[k];
        for (size_t i = 0; i < H; ++i) sum += wo[k * H + i] * h[n * H + i];
        out.push_back(std::tanh(sum));
      }
  }
  return {out, h};
}

const std::string kRnn =
    "type: 'RNN' recurrent_param { num_output: 3 weight_filler { type: 'gaussian' std: 0.8 } bias_filler { type: "
    "'uniform' min: -1 max: 1 } ";

LAYER_CASES(RNN) {
  // cont: 0 in the first row, so that no state passes from one pass to the next.
  const auto cont = [](size_t bottom, int k, double u) {
    return bottom != 1 ? 2 * u - 1 : static_cast<double>(k >= 3 && u > 0.3);
  };
  Case& plain = s.add(kRnn + "}", {{4, 2, 5}, {4, 2}});
  plain.input = cont;
  plain.formula = [](const auto& x, const auto& p) { return std::vector<Values>{rnn(4, 2, 5, 3, 0, x, p, {})[0]}; };
  Case& still = s.add(kRnn + "}", {{3, 2, 2, 2}, {3, 2}, {2, 4}});
  still.input = cont, still.otherBatch = false;  // axis 0 is time in some bottoms, streams in another
  still.formula = [](const auto& x, const auto& p) { return std::vector<Values>{rnn(3, 2, 4, 3, 4, x, p, {})[0]}; };
  const auto parts = [](size_t bottom, int, double u) { return bottom == 1 ? u : 2 * u - 1; };
  for (const size_t fixed : {0, 5}) {  // the state is an input here, and cont may be anything
    std::vector<Shape> bottoms = {{3, 2, 4}, {3, 2}, {1, 2, 3}};
    if (fixed) bottoms[2] = {2, 3}, bottoms.insert(bottoms.begin() + 2, Shape{2, 5});
    Case& exposed = s.add(kRnn + "expose_hidden: true } top: 'o' top: 'hT'", bottoms);
    exposed.input = parts, exposed.gradientTops = 1, exposed.otherBatch = false;
    exposed.formula = [fixed](const auto& x, const auto& p) { return rnn(3, 2, 4, 3, fixed, x, p, x.back()); };
  }
  s.bad("type: 'RNN' recurrent_param { }", {{2, 3, 4}, {2, 3}}, "num_output must be given");
  s.bad(kRnn + "}", {{2, 3}, {2, 3}}, "must be steps x streams x inputs");
  s.bad(kRnn + "expose_hidden: true }", {{2, 3, 4}, {2, 3}}, "takes 3 to 4 bottom blob(s), here are 2");
  s.bad(kRnn + "expose_hidden: true } top: 'o' top: 'h'", {{2, 3, 4}, {2, 3}, {1, 2, 3}}, "must be 1x3x3, not 1x2x3");
}

// Two batches of a sentence equal one batch of twice the steps; each rank has its own state, and skipping a step resets
// it.
TEST(RNN, GoesOnFromTheSameRanksStepBefore) {
  Case c;
  c.description = kRnn + "}", c.bottoms = {{6, 2, 5}, {6, 2}};
  c.input = [](size_t bottom, int k, double u) { return bottom == 1 ? k >= 2 : 2 * u - 1; };
  Bench whole(c, DType::kFloat64);
  whole.forward();
  Case half = c;
  half.bottoms = {{3, 2, 5}, {3, 2}};
  Bench b(half, DType::kFloat64);
  const auto run = [&](int64_t step, int rank, int part) {
    for (int i = 0; i < 30; ++i) Bench::set(*b.bottoms()[0], i, whole.bottoms()[0]->dataAt(part * 30 + i));
    for (int i = 0; i < 6; ++i) Bench::set(*b.bottoms()[1], i, whole.bottoms()[1]->dataAt(part * 6 + i));
    b.run().step = step, b.run().rank = rank;
    b.forward();
    return b.topData(0);
  };
  const auto all = whole.topData(0);
  const Values first(all.begin(), all.begin() + 18), second(all.begin() + 18, all.end());
  EXPECT_EQ(run(0, 0, 0), first);
  EXPECT_EQ(run(0, 1, 0), first);
  EXPECT_EQ(run(1, 0, 1), second);
  EXPECT_EQ(run(1, 1, 1), second);
  EXPECT_NE(run(7, 0, 1), second);
}

}  // namespace
}  // namespace crema::conformance
