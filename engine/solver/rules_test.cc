#include "solver/rules.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

#include "model/upgrade.h"
#include "support/message_of.h"
#include "support/solver_fixture.h"

namespace crema::solver {
namespace {

using RulesTest = test::SolverFixture;
using test::messageOf, test::solver;

// Caffe's rules one weight at a time, written from the papers' formulas as section "Solver" of Caffe's manual gives
// them; g is the gradient with its decay, decay that part of it, state the weight's own memory; t counts updates
// from 1.
using Rule = std::function<double(double g, double decay, double rate, int t, std::vector<double>& state)>;
const std::map<std::string, Rule>& rulesByHand() {
  static const std::map<std::string, Rule> rules = {
      {"type: 'Nesterov' momentum: 0.875",
       [](double g, double, double rate, int, auto& v) {
         const double before = v[0];
         v[0] = 0.875 * v[0] + rate * g;
         return v[0] + 0.875 * (v[0] - before);
       }},
      {"type: 'AdaGrad' delta: 0.0009765625",
       [](double g, double, double rate, int, auto& v) {
         return rate * g / (std::sqrt(v[0] += g * g) + 0.0009765625);
       }},
      {"type: 'RMSProp' rms_decay: 0.75 delta: 0.0009765625",
       [](double g, double, double rate, int, auto& v) {
         v[0] = 0.75 * v[0] + 0.25 * g * g;
         return rate * g / (std::sqrt(v[0]) + 0.0009765625);
       }},
      {"type: 'AdaDelta' momentum: 0.875 delta: 0.0009765625 base_lr: 1",
       [](double g, double, double rate, int, auto& v) {
         v[0] = 0.875 * v[0] + 0.125 * g * g;
         const double step = std::sqrt(v[1] + 0.0009765625) / std::sqrt(v[0] + 0.0009765625) * g;
         v[1] = 0.875 * v[1] + 0.125 * step * step;
         return rate * step;
       }},
      {"type: 'Adam' momentum: 0.875 momentum2: 0.9375 delta: 0.0009765625",
       [](double g, double, double rate, int t, auto& v) {
         v[0] = 0.875 * v[0] + 0.125 * g;
         v[1] = 0.9375 * v[1] + 0.0625 * g * g;
         return rate * std::sqrt(1 - std::pow(0.9375, t)) / (1 - std::pow(0.875, t)) * v[0] /
                (std::sqrt(v[1]) + 0.0009765625);
       }},
  };
  return rules;
}

TEST_F(RulesTest, EveryTypeIsItsFormula) {
  for (const auto& [text, rule] : rulesByHand()) {
    SCOPED_TRACE(text);
    const auto p = parameter(text + " weight_decay: 0.01 lr_policy: 'exp' gamma: 0.5");
    auto s = make(p, DType::kFloat64);
    std::vector<std::vector<double>> state(weights(*s).size(), std::vector<double>(2, 0.0));
    for (int t = 1; t <= 6; ++t) {
      auto w = weights(*s);
      s->computeGradient(0);
      const double rate = static_cast<double>(p.base_lr()) * std::pow(0.5, t - 1);
      for (const auto& l : s->net().learnables())
        for (int64_t k = l.offset; k < l.offset + l.blob->count(); ++k) {
          const auto j = static_cast<size_t>(k);
          const double decay = static_cast<double>(p.weight_decay()) * l.decayMult * w[j];
          const double g = s->net().flatDiff().diffAt(static_cast<int>(k)) + decay;
          w[j] -= rule(g, decay, rate * l.lrMult, t, state[j]);
        }
      s->applyUpdate(s->net().flatDiff().diff<double>(), 1);
      const auto got = weights(*s);
      for (size_t k = 0; k < w.size(); ++k) ASSERT_NEAR(got[k], w[k], 1e-12);
    }
  }
}

// Resuming from a snapshot restores both histories of types that have two.
TEST_F(RulesTest, EveryTypeResumesToTheSameBits) {
  for (const auto& [text, rule] : rulesByHand()) {
    SCOPED_TRACE(text);
    const auto p = parameter(text + " weight_decay: 0.01");
    auto whole = make(p), resumed = make(p);
    step<float>(*whole, 3);
    const SnapshotFiles files = whole->snapshot(folder_.file("rule"));
    resumed->restore(files.state, "");
    step<float>(*whole, 3), step<float>(*resumed, 3);
    EXPECT_EQ(weights(*whole), weights(*resumed));
    EXPECT_EQ(model::readState(files.state).history_size() % static_cast<int>(whole->net().learnables().size()), 0);
  }
  const auto adam = make(parameter("type: 'Adam' momentum: 0.9")), sgd = make(parameter("type: 'SGD'"));
  const std::string said = messageOf([&] { adam->restore(sgd->snapshot(folder_.file("sgd")).state, ""); });
  EXPECT_NE(said.find("Incorrect length of history blobs"), std::string::npos) << said;
  EXPECT_NE(said.find("Adam"), std::string::npos) << said;
}

TEST_F(RulesTest, TypesRefuseWhatTheyDoNotTake) {
  std::string known = "known types: ";
  kernels::UpdateRules::each([&]<class R>() { known += std::string(known.ends_with(": ") ? "" : ", ") + R::kType; });
  for (const auto& [text, want] : std::vector<std::pair<std::string, std::string>>{
           {"type: 'AdaGrad' momentum: 0.9", "Momentum cannot be used with AdaGrad"},
           {"type: 'RMSProp' momentum: 0.9", "Momentum cannot be used with RMSProp"},
           {"type: 'RMSProp' rms_decay: 1", "rms_decay should lie between 0 and 1"},
           {"type: 'Adam' momentum2: 1", "momentum2 should lie"},
           {"type: 'Adam' momentum: 1.5", "momentum should lie"},
           {"type: 'Lion'", known}}) {
    const std::string said = messageOf([&, t = text] { make(parameter(t)); });
    EXPECT_NE(said.find(want), std::string::npos) << text << ": " << said;
  }
}

// SGD's formula is tested in solver_test.cc, with clipping and decay.
TEST(Rules, EveryTypeOfTheListIsTestedHere) {
  kernels::UpdateRules::each([]<class R>() {
    const std::string type = std::string("type: '") + R::kType + "'";
    const auto& byHand = rulesByHand();
    EXPECT_TRUE(R::kType == std::string("SGD") ||
                std::any_of(byHand.begin(), byHand.end(), [&](const auto& r) { return r.first.rfind(type, 0) == 0; }))
        << R::kType << " is missing from rulesByHand()";
  });
}

TEST(Rules, EveryOldNumberIsAType) {
  const auto* old = caffe::SolverParameter::SolverType_descriptor();
  for (int i = 0; i < old->value_count(); ++i) {
    auto p = solver("solver_type: " + old->value(i)->name());
    model::upgradeSolver(&p, "solver");
    std::string upper = ruleOf(p).type;
    std::transform(upper.begin(), upper.end(), upper.begin(), [](unsigned char c) { return std::toupper(c); });
    EXPECT_EQ(upper, old->value(i)->name());
  }
}

}  // namespace
}  // namespace crema::solver
