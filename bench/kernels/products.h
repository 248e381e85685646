// Convolutions and inner products.
#pragma once
#include "bench.h"
#include "kernels/updates/list.h"

namespace crema::kernels::bench {

inline void conv(Bench& b, const char* name, const ConvShape& s, bool toData) {
  const int64_t in = int64_t{s.ic} * s.h * s.w, out = int64_t{s.oc} * s.oh() * s.ow();
  const Floats x = numbers(s.n * in, 1), w = numbers(int64_t{s.oc} * (s.ic / s.groups) * s.kh * s.kw, 2);
  const Floats bias = numbers(s.oc, 3), dy = numbers(s.n * out, 4);
  Floats y(dy.size()), dx(x.size()), dw(w.size()), db(bias.size());
  ConvShape one = s;  // images do not meet in these two passes: the last one tells
  one.n = 1;
  const int64_t last = s.n - 1;
  const Work work = flops(2.0 * s.n * static_cast<double>(out) * (s.ic / s.groups) * s.kh * s.kw);
  Context& c = b.context();
  b.time<float>(
      name, "convForward", work, [&] { convForward(c, s, x.data(), w.data(), bias.data(), y.data()); },
      y.data() + last * out, out,
      [&](float* want) { ref::convForward(one, x.data() + last * in, w.data(), bias.data(), want); });
  if (toData)
    b.time<float>(
        name, "convBackwardData", work, [&] { convBackwardData(c, s, dy.data(), w.data(), dx.data()); },
        dx.data() + last * in, in,
        [&](float* want) { ref::convBackwardData(one, dy.data() + last * out, w.data(), want); });
  b.time<float>(
      name, "convBackwardWeights", work, [&] { convBackwardWeights(c, s, x.data(), dy.data(), dw.data(), false); }, dw,
      [&](float* want) { ref::convBackwardWeights(s, x.data(), dy.data(), want, false); });
  b.time<float>(
      name, "convBackwardBias", bytesOf(dy.size()), [&] { convBackwardBias(c, s, dy.data(), db.data(), false); }, db,
      [&](float* want) { ref::convBackwardBias(s, dy.data(), want, false); });
}

// As a scoring plan computes it: weights are packed once, and what stands behind it in a residual block is done on its outputs.
inline void scoredConv(Bench& b, const char* name, const ConvShape& s) {
  const int64_t in = int64_t{s.ic} * s.h * s.w, out = int64_t{s.oc} * s.oh() * s.ow();
  const Floats x = numbers(s.n * in, 1), w = numbers(int64_t{s.oc} * (s.ic / s.groups) * s.kh * s.kw, 2);
  const Floats bias = numbers(s.oc, 3), factor = numbers(s.oc, 4), other = numbers(s.n * out, 5);
  using S = Step<float>;
  const Epilogue<float> then = {{.kind = S::kAffine, .factor = factor.data(), .offset = bias.data()},
                                {.kind = S::kAdd, .other = other.data()},
                                {.kind = S::kRelu}};
  Floats y(other.size());
  const FrozenWeights frozen(b.context());
  b.time<float>(
      name, "convForward", flops(2.0 * s.n * static_cast<double>(out) * (s.ic / s.groups) * s.kh * s.kw),
      [&] { convForward(b.context(), s, x.data(), w.data(), bias.data(), y.data(), then); }, y,
      [&](float* want) { ref::convForward(s, x.data(), w.data(), bias.data(), want, then); });
}

inline void innerProduct(Bench& b, const char* name, const IpShape& s) {
  const Floats x = numbers(int64_t{s.n} * s.in, 1), w = numbers(int64_t{s.in} * s.out, 2);
  const Floats bias = numbers(s.out, 3), dy = numbers(int64_t{s.n} * s.out, 4);
  Floats y(dy.size()), dx(x.size()), dw(w.size()), db(bias.size());
  const Work work{2.0 * s.n * s.in * s.out, bytesOf(w.size()).bytes};
  Context& c = b.context();
  b.time<float>(
      name, "ipForward", work, [&] { ipForward(c, s, x.data(), w.data(), bias.data(), y.data()); }, y,
      [&](float* want) { ref::ipForward(s, x.data(), w.data(), bias.data(), want); });
  b.time<float>(
      name, "ipBackwardData", work, [&] { ipBackwardData(c, s, dy.data(), w.data(), dx.data()); }, dx,
      [&](float* want) { ref::ipBackwardData(s, dy.data(), w.data(), want); });
  b.time<float>(
      name, "ipBackwardWeights", work, [&] { ipBackwardWeights(c, s, x.data(), dy.data(), dw.data(), false); }, dw,
      [&](float* want) { ref::ipBackwardWeights(s, x.data(), dy.data(), want, false); });
  b.time<float>(
      name, "ipBackwardBias", bytesOf(dy.size()), [&] { ipBackwardBias(c, s, dy.data(), db.data(), false); }, db,
      [&](float* want) { ref::ipBackwardBias(s, dy.data(), want, false); });
}

// What update rules read of a solver.
struct SolverFields {
  float momentum() const { return 0.9f; }
  float momentum2() const { return 0.99f; }
  float rms_decay() const { return 0.98f; }
  float delta() const { return 1e-3f; }
};

template <class Rule>
Update rule() {
  return {.rule = Rule(SolverFields(), 4), .rate = {.policy = 0.01}, .decay = 0.0005};
}

// The gradient of an inner product and its update at once, of so many ranks (1 or 2). The reference changes weights as often
// as the first run does: once.
inline void innerProductUpdate(Bench& b, const char* name, const IpShape& s, int ranks) {
  const Update u = rule<SGD>();
  const int64_t count = int64_t{s.in} * s.out, each = int64_t{s.n} * (s.in + s.out);
  const Floats all = numbers(ranks * each, 1), before = numbers(count, 3);
  IpFactors<float> f{.x = all.data(), .dy = all.data() + int64_t{s.n} * s.in, .apart = each};
  if (ranks == 2) f.sum = {{0, 0}, {1, 1}, {0, -1}};
  Floats history(before.size()), w = before;
  b.time<float>(
      name, "ipUpdate", {2.0 * ranks * s.n * static_cast<double>(count), bytesOf(4 * count).bytes},
      [&] { ipUpdate(b.context(), s, f, u, history.data(), count, w.data()); }, w,
      [&](float* want) {
        std::copy(before.begin(), before.end(), want);
        Floats there(before.size());
        ref::ipUpdate(s, f, u, there.data(), count, want);
      });
}

// The k-th history is read and written, too.
template <class Rule>
void update(Bench& b, const char* name, int64_t count) {
  const Update u = rule<Rule>();
  const Floats diff = numbers(count, 1), before = numbers(count, 3);
  const Floats histories(static_cast<size_t>(Rule::kHistories * count), 0.5f);
  Floats here = histories, w = before;
  b.time<float>(
      name, "update", bytesOf(3 * count, 2 * here.size()),
      [&] { kernels::update(b.context(), count, u, diff.data(), here.data(), count, w.data()); }, w,
      [&](float* want) {
        std::copy(before.begin(), before.end(), want);
        Floats there = histories;
        ref::update(count, u, diff.data(), there.data(), count, want);
      });
}

}  // namespace crema::kernels::bench
