// LSTM, RNN and LSTMUnit (formulas: engine/layers/lstm.cc, rnn.cc), a few nodes for every time step: ONNX's LSTM cannot
// start a new sequence in the middle of a batch, as `cont` can. Without expose_hidden every pass starts from state 0,
// as scoring does here.
#include "exchange/graph.h"

namespace crema::exchange {
namespace {

// Rows [t N, (t + 1) N) for each step t.
std::vector<Value> steps(OnnxLayer& l, const Value& rows, int64_t T, int64_t N) {
  if (T == 1) return {rows};
  return l.nodes("Split", static_cast<size_t>(T), {rows, l.ints(std::vector<int64_t>(static_cast<size_t>(T), N))},
                 {{"axis", int64_t{0}}});
}

struct Unrolled {
  explicit Unrolled(OnnxLayer& layer, size_t states)
      : l(layer), T(l.in()[0]), N(l.in()[1]), H(l.param().recurrent_param().num_output()) {
    exposed = l.param().recurrent_param().expose_hidden();
    hasStatic = l.bottoms() == 3 + (exposed ? states : 0);
    const Value x = l.reshaped(l.bottom(), {T * N, l.in().count(2)});
    sums = steps(l, l.node("Gemm", {x, l.weight(0), l.weight(1)}, {{"transB", int64_t{1}}}), T, N);
    cont = steps(l, l.reshaped(l.bottom(1), {T * N, 1}), T, N);
    if (hasStatic) {
      const Value s = l.node("Flatten", {l.bottom(2)}, {{"axis", int64_t{1}}});
      const Value fixed = l.node("Gemm", {s, l.weight(2)}, {{"transB", int64_t{1}}});
      for (Value& sum : sums) sum = l.node("Add", {sum, fixed});
    }
    for (size_t i = 0; i < states; ++i)
      state.push_back(exposed ? l.reshaped(l.bottom(l.bottoms() - states + i), {N, H})
                              : l.floats({N, H}, std::vector<float>(static_cast<size_t>(N * H), 0.f)));
  }
  size_t recurrentWeights() const { return hasStatic ? 3 : 2; }
  Value carried(size_t i, int64_t t) { return l.node("Mul", {state[i], cont[static_cast<size_t>(t)]}); }
  Value sumsAt(int64_t t) {
    return l.node("Gemm", {carried(0, t), l.weight(recurrentWeights()), sums[static_cast<size_t>(t)]},
                  {{"transB", int64_t{1}}});
  }
  Value together(const std::vector<Value>& rows) {
    return rows.size() == 1 ? rows[0] : l.node("Concat", rows, {{"axis", int64_t{0}}});
  }
  void finish(const Value& rows) {
    l.top(l.shapedAs(l.out(), rows));
    for (size_t i = 0; exposed && i < state.size(); ++i) l.top(i + 1, l.shapedAs(l.out(i + 1), state[i]));
  }

  OnnxLayer& l;
  int64_t T, N, H;
  bool exposed = false, hasStatic = false;
  std::vector<Value> sums, cont, state;
};

struct Cell {
  Value cell, hidden;
};
// One step from the sums of its gates, H of each along `axis`, and the part of the previous cell state that is kept.
Cell step(OnnxLayer& l, int64_t axis, int64_t H, const Value& sums, const Value& before) {
  const auto gates = l.nodes("Split", 4, {sums, l.ints(std::vector<int64_t>(4, H))}, {{"axis", axis}});
  const Value in = l.node("Mul", {l.node("Sigmoid", {gates[0]}), l.node("Tanh", {gates[3]})});
  const Value kept = l.node("Mul", {l.node("Sigmoid", {gates[1]}), before});
  const Value cell = l.node("Add", {kept, in});
  return {cell, l.node("Mul", {l.node("Sigmoid", {gates[2]}), l.node("Tanh", {cell})})};
}

void lstm(OnnxLayer& l) {
  Unrolled u(l, 2);
  std::vector<Value> all;
  for (int64_t t = 0; t < u.T; ++t) {
    const Value sums = u.sumsAt(t);
    const Cell c = step(l, 1, u.H, sums, u.carried(1, t));
    u.state = {c.hidden, c.cell};
    all.push_back(c.hidden);
  }
  u.finish(u.together(all));
}

void lstmUnit(OnnxLayer& l) {
  const Value cont = l.reshaped(l.bottom(2), {1, l.in()[1], 1});
  const Cell c = step(l, 2, l.in()[2], l.bottom(1), l.node("Mul", {l.bottom(0), cont}));
  l.top(1, c.hidden);
  l.top(0, c.cell);
}

void rnn(OnnxLayer& l) {
  Unrolled u(l, 1);
  std::vector<Value> all;
  for (int64_t t = 0; t < u.T; ++t) all.push_back(u.state[0] = l.node("Tanh", {u.sumsAt(t)}));
  const size_t w = u.recurrentWeights() + 1;
  const Value y = l.node("Gemm", {u.together(all), l.weight(w), l.weight(w + 1)}, {{"transB", int64_t{1}}});
  u.finish(l.node("Tanh", {y}));
}

}  // namespace

void addOnnxRecurrent(OnnxConversions& all) { all.insert({{"LSTM", lstm}, {"LSTMUnit", lstmUnit}, {"RNN", rnn}}); }

}  // namespace crema::exchange
