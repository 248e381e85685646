// Rows, updates, sums and softmax against double loops, and the choice of an instruction set.
#include "base/error.h"
#include "support/kernel_bits.h"
#include "support/message_of.h"

namespace crema::kernels {
namespace {

TEST(Rows, EveryLengthAroundTheVectorWidth) {
  for (size_t n : {0, 1, 7, 8, 9, 15, 16, 17, 31, 33, 1000, 70001}) {
    const auto a = numbers(n, 1), b = numbers(n, 2);
    const auto count = static_cast<int64_t>(n);
    const auto relu = sameBits("relu", n, NAN, [&](Context& k, float* y) { reluForward(k, count, 0.1f, a.data(), y); });
    const auto back = sameBits("relu back", n, NAN,
                               [&](Context& k, float* y) { reluBackward(k, count, 0.1f, a.data(), b.data(), y); });
    const auto product =
        sameBits("multiply", n, NAN, [&](Context& k, float* y) { multiply(k, count, a.data(), b.data(), y); });
    const auto total = sameBits("add", n, NAN, [&](Context& k, float* y) { add(k, count, a.data(), b.data(), y); });
    for (size_t i = 0; i < n; ++i) {
      EXPECT_EQ(relu[i], a[i] > 0 ? a[i] : 0.1f * a[i]);
      EXPECT_EQ(back[i], a[i] > 0 ? b[i] : 0.1f * b[i]);
      EXPECT_EQ(product[i], a[i] * b[i]);
      EXPECT_EQ(total[i], a[i] + b[i]);
    }
  }
}

TEST(Rows, SumsAreRectifiedOnTheirWay) {
  for (size_t n : {0, 1, 15, 16, 17, 33, 70001}) {
    const auto a = numbers(n, 1), b = numbers(n, 2), y = numbers(n, 3);
    const auto count = static_cast<int64_t>(n);
    const auto sum =
        sameBits("addRelu", n, NAN, [&](Context& k, float* to) { addRelu(k, count, 0.1f, a.data(), b.data(), to); });
    const auto back = [&](const float* dy1, bool both) {
      return sameBits("addReluBackward", both ? 2 * n : n, NAN, [&](Context& k, float* to) {
        addReluBackward(k, count, 0.1f, y.data(), a.data(), dy1, to, both ? to + n : nullptr);
      });
    };
    const auto one = back(nullptr, false), two = back(b.data(), true);
    for (size_t i = 0; i < n; ++i) {
      const float z = a[i] + b[i];
      EXPECT_EQ(sum[i], z > 0 ? z : 0.1f * z);
      EXPECT_EQ(one[i], y[i] > 0 ? a[i] : 0.1f * a[i]);
      EXPECT_EQ(two[i], y[i] > 0 ? z : 0.1f * z);
      EXPECT_EQ(two[n + i], two[i]);
    }
  }
}

// The solver's fields that update rules read.
struct SolverFields {
  float momentum() const { return 0.9f; }
  float momentum2() const { return 0.99f; }
  float rms_decay() const { return 0.98f; }
  float delta() const { return 1e-3f; }
};

struct Weights {
  explicit Weights(size_t n, int perWeight)
      : count(static_cast<int64_t>(n)), w(numbers(n, 3)), histories(n * static_cast<size_t>(perWeight)) {}
  int64_t count;
  std::vector<float> w, histories;
};

// After three steps of the reference loops, one step of the kernel against the reference in double.
template <class Rule>
void checkUpdate(size_t n, bool l1) {
  SCOPED_TRACE(testing::Message() << Rule::kType << (l1 ? ", L1, " : ", L2, ") << n);
  Weights start(n, Rule::kHistories);
  const auto at = [&](int iteration) {
    return Update{.rule = Rule(SolverFields(), iteration),
                  .rate = {.policy = 0.01, .multiplier = 2},
                  .decay = 0.0005,
                  .scale = 0.5,
                  .l1 = l1};
  };
  for (int i = 0; i < 3; ++i)
    ref::update(start.count, at(i), numbers(n, 10 + static_cast<uint64_t>(i)).data(), start.histories.data(),
                start.count, start.w.data());
  const auto g = numbers(n, 1);
  std::vector<double> w = wide(start.w), histories = wide(start.histories);
  ref::update(start.count, at(3), wide(g).data(), histories.data(), start.count, w.data());
  std::vector<float> kept;
  const auto updated = sameBits("weights", n, 0.f, [&](Context& k, float* out) {
    std::copy(start.w.begin(), start.w.end(), out);
    kept = start.histories;
    update(k, start.count, at(3), g.data(), kept.data(), start.count, out);
  });
  near("weights", updated, w, std::vector<double>(n, 2.0));
  near("histories", kept, histories, std::vector<double>(kept.size(), 2.0));
  sameBits("histories", kept.size(), 0.f, [&](Context& k, float* out) {
    std::copy(start.histories.begin(), start.histories.end(), out);
    std::vector<float> to = start.w;
    update(k, start.count, at(3), g.data(), out, start.count, to.data());
  });
}

TEST(Updates, StepsAreTheirReferences) {
  UpdateRules::each([]<class Rule>() {
    for (const size_t n : {0, 1, 7, 33, 1003, 70001})
      for (const bool l1 : {false, true}) checkUpdate<Rule>(n, l1);
  });
}

// Of so many ranks, in trees of each form: (0 + 1) + 2, and ((0 + 1) + (2 + 3)) + 4.
std::vector<SumStep> stepsOf(int ranks) {
  static const std::map<int, std::vector<SumStep>> kAll = {
      {1, {{0, 0}}},
      {3, {{0, 0}, {1, 1}, {0, -1}, {1, 2}, {0, -1}}},
      {5, {{0, 0}, {1, 1}, {0, -1}, {1, 2}, {2, 3}, {1, -1}, {0, -1}, {1, 4}, {0, -1}}}};
  return kAll.at(ranks);
}

// Against the gradients, their sum and its update apart, bit by bit. Zeros of either sign, and ranks whose numbers lie apart.
void checkIpUpdate(const IpShape& s, int ranks, const Update& u, int histories) {
  const auto n = static_cast<size_t>(s.in) * s.out;
  const auto stride = static_cast<int64_t>(n);
  SCOPED_TRACE(testing::Message() << ranks << " ranks, " << s.n << " x " << s.in << " -> " << s.out
                                  << (s.transposed ? " transposed" : ""));
  const int64_t apart = int64_t{s.n} * (s.in + s.out) + 3;
  auto factors = numbers(static_cast<size_t>(ranks * apart), 1);
  for (size_t i = 0; i < factors.size(); i += 5) factors[i] = i % 2 ? -0.f : 0.f;
  const IpFactors<float> f{factors.data(), factors.data() + int64_t{s.n} * s.in, apart, stepsOf(ranks)};
  const auto w = numbers(n, 3), kept = numbers(n * static_cast<size_t>(histories), 4, 1.5);
  const auto all = [&](const char* what, const auto& change) {  // weights, then histories
    return sameBits(what, n + kept.size(), 0.f, [&](Context& k, float* out) {
      std::copy(w.begin(), w.end(), out), std::copy(kept.begin(), kept.end(), out + n);
      change(k, out);
    });
  };
  const auto apartOnes = all("apart", [&](Context& k, float* out) {
    std::vector<std::vector<float>> slots(4, std::vector<float>(n, NAN));
    for (const auto [slot, rank] : f.sum) {
      float* to = slots[static_cast<size_t>(slot)].data();
      if (rank >= 0)
        ipBackwardWeights(k, s, f.x + rank * apart, f.dy + rank * apart, to, false);
      else
        for (size_t i = 0; i < n; ++i) to[i] += slots[static_cast<size_t>(slot) + 1][i];
    }
    update(k, stride, u, slots[0].data(), out + n, stride, out);
  });
  EXPECT_EQ(all("together", [&](Context& k, float* out) { ipUpdate(k, s, f, u, out + n, stride, out); }), apartOnes);
}

TEST(Updates, OfAGradientWithoutMemoryOfItsOwn) {
  UpdateRules::each([]<class Rule>() {
    SCOPED_TRACE(Rule::kType);
    Update u{.rule = Rule(SolverFields(), 3), .rate = {.policy = 0.01, .multiplier = 2}, .decay = 0.01, .scale = 0.5};
    for (IpShape s :
         {IpShape{1, 1, 1}, {0, 5, 3}, {3, 7, 13}, {33, 17, 15}, {4, 70, 45}, {5, 1100, 150}, {32, 400, 303}})
      for (const int ranks : {1, 3, 5}) {
        s.transposed = false;
        checkIpUpdate(s, ranks, u, Rule::kHistories);
        u.l1 = !u.l1, s.transposed = true;
        checkIpUpdate(s, ranks, u, Rule::kHistories);
      }
  });
}

TEST(Reductions, FixedOrderAndClosedForm) {
  for (size_t n : {0, 1, 9, 4095, 4096, 4097, 100000}) {
    const auto a = numbers(n, 5);
    double squares = 0;
    for (float v : a) squares += static_cast<double>(v) * v;
    double first = NAN;
    for (int threads : {1, 2, 3}) {
      Context k(bestIsa(), threads);
      const auto count = static_cast<int64_t>(n);
      if (std::isnan(first)) first = sumOfSquares(k, count, a.data());
      EXPECT_EQ(first, sumOfSquares(k, count, a.data()));
      EXPECT_NEAR(sumOfSquares(k, count, a.data()), squares, 1e-12 * squares);
      EXPECT_NEAR(dot(k, count, a.data(), a.data()), squares, 1e-12 * squares);
    }
  }
}

TEST(Softmax, SumsToOneAndSurvivesLargeInputs) {
  const std::vector<float> x = {1000.f, 1001.f, 999.f, -1000.f, 0.f, 0.f, 0.f, 0.f};
  std::vector<float> y(8);
  Context k(bestIsa(), 1);
  softmax(k, 2, 4, 1, x.data(), y.data());
  const double e = std::exp(-1.0), f = std::exp(-2.0);
  EXPECT_NEAR(y[0], e / (1 + e + f), 1e-7);
  EXPECT_EQ(y[3], 0.f);
  EXPECT_FLOAT_EQ(y[5], 0.25f);
}

// Loops over tiles compute the reference's sums in the same order, so all bits agree, in place too.
TEST(Softmax, HasTheReferencesBits) {
  const int shapes[][3] = {{1, 1, 1}, {3, 1000, 1}, {700, 10, 1}, {2, 21, 127}, {2, 5, 128}, {3, 4, 129}, {1, 3, 5000}};
  for (const auto& [outer, axis, inner] : shapes) {
    SCOPED_TRACE(testing::Message() << outer << " x " << axis << " x " << inner);
    auto x = numbers(static_cast<size_t>(outer) * axis * inner, 1);
    for (size_t i = 0; i < x.size(); ++i) x[i] *= i % 5 ? 3.f : 80.f;
    std::vector<float> want(x.size());
    ref::softmax(outer, axis, inner, x.data(), want.data());
    EXPECT_EQ(
        sameBits("softmax", x.size(), NAN, [&](Context& k, float* y) { softmax(k, outer, axis, inner, x.data(), y); }),
        want);
    Context k(bestIsa(), 2);
    softmax(k, outer, axis, inner, x.data(), x.data());
    EXPECT_EQ(x, want);
  }
}

TEST(ChooseIsa, TakesEveryNameOfTheListAndNoOther) {
  EXPECT_EQ(&chooseIsa(""), &bestIsa());
  EXPECT_EQ(&bestIsa(), isasHere().back());
  for (const Isa* isa : isas()) {
    SCOPED_TRACE(name(*isa));
    if (runsHere(*isa)) {
      EXPECT_EQ(&chooseIsa(name(*isa)), isa);
    } else {
      EXPECT_NE(test::messageOf([&] { chooseIsa(name(*isa)); }).find("this CPU does not have it"), std::string::npos);
    }
  }
  const std::string unknown = test::messageOf([] { chooseIsa("sse9"); });
  EXPECT_EQ(unknown.find("-isa must be "), 0u) << unknown;
  for (const Isa* isa : isas()) EXPECT_NE(unknown.find(name(*isa)), std::string::npos) << unknown;
}

}  // namespace
}  // namespace crema::kernels
