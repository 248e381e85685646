#include "solver/solver.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cmath>
#include <csignal>
#include <functional>
#include <map>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "model/proto_io.h"
#include "model/upgrade.h"
#include "solver/descriptions.h"
#include "solver/lr_policy.h"
#include "support/message_of.h"
#include "support/records.h"
#include "support/shared_data.h"

namespace crema::solver {
namespace {

caffe::SolverParameter solver(const std::string& text) {
  return model::parseText<caffe::SolverParameter>(text, "solver");
}

using test::messageOf;

TEST(LearningRate, EveryPolicyIsItsFormula) {
  int step = 0;
  const auto rate = [&](const std::string& text, int i) {
    return learningRate(solver("base_lr: 0.5 gamma: 0.25 power: 2 stepsize: 10 max_iter: 100 " + text), i, &step);
  };
  EXPECT_DOUBLE_EQ(rate("lr_policy: 'fixed'", 77), 0.5);
  EXPECT_DOUBLE_EQ(rate("lr_policy: 'step'", 29), 0.5 / 16);
  EXPECT_DOUBLE_EQ(rate("lr_policy: 'exp'", 3), 0.5 / 64);
  EXPECT_DOUBLE_EQ(rate("lr_policy: 'inv'", 4), 0.125);
  EXPECT_DOUBLE_EQ(rate("lr_policy: 'poly'", 50), 0.125);
  EXPECT_DOUBLE_EQ(rate("lr_policy: 'sigmoid'", 10), 0.25);
  step = 0;
  const std::string multi = "lr_policy: 'multistep' stepvalue: 5 stepvalue: 7";
  EXPECT_DOUBLE_EQ(rate(multi, 4), 0.5);
  EXPECT_DOUBLE_EQ(rate(multi, 5), 0.125);
  EXPECT_DOUBLE_EQ(rate(multi, 6), 0.125);
  EXPECT_DOUBLE_EQ(rate(multi, 7), 0.03125);
  EXPECT_EQ(step, 2);
  EXPECT_THROW(checkPolicy(solver("lr_policy: 'magic'")), Error);
  EXPECT_THROW(checkPolicy(solver("lr_policy: 'step'")), Error);
}

class SolverTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { setLogLevel(LogLevel::kWarning); }
  static void TearDownTestSuite() { setLogLevel(LogLevel::kInfo); }
  void SetUp() override { test::writeLearnableRecords(folder_.file("db"), 200); }

  caffe::SolverParameter parameter(const std::string& extra, int batch = 10) {
    auto s = solver("base_lr: 0.05 lr_policy: 'fixed' max_iter: 1000 random_seed: 3 solver_mode: CPU");
    s.MergeFrom(solver(extra));  // the later value of a field wins
    *s.mutable_net_param() =
        model::parseText<caffe::NetParameter>(test::learnableNet(folder_.file("db"), folder_.file("db"), batch), "net");
    return s;
  }
  std::unique_ptr<Solver> make(const caffe::SolverParameter& p, DType dtype = DType::kFloat32) {
    SolverOptions o;
    o.kernels = &kernels_;
    o.dtype = dtype;
    o.seed = static_cast<uint64_t>(p.random_seed());
    o.log = false;
    return std::make_unique<Solver>(p, o);
  }
  template <class T>
  static void step(Solver& s, int times) {
    for (int i = 0; i < times; ++i) {
      s.computeGradient(0);
      s.applyUpdate(s.net().flatDiff().diff<T>(), 1);
    }
  }
  static std::vector<double> weights(Solver& s) {
    std::vector<double> v;
    for (int i = 0; i < s.net().flatData().count(); ++i) v.push_back(s.net().flatData().dataAt(i));
    return v;
  }

  test::TemporaryFolder folder_;
  kernels::Context kernels_{kernels::bestIsa(), 1};
};

// The update in plain algebra, in double, from the gradients that the net reports.
TEST_F(SolverTest, UpdateIsTheFormula) {
  for (const char* extra :
       {"momentum: 0.9 weight_decay: 0.01", "momentum: 0.5 weight_decay: 0.01 regularization_type: 'L1'",
        "momentum: 0.9 clip_gradients: 0.05", "momentum: 0.9 weight_decay: 0.01 iter_size: 2 clip_gradients: 0.1"}) {
    SCOPED_TRACE(extra);
    const auto p = parameter(extra);
    auto s = make(p, DType::kFloat64);
    std::vector<double> h(static_cast<size_t>(s->net().flatData().count()), 0.0);
    for (int i = 0; i < 5; ++i) {
      auto w = weights(*s);
      s->computeGradient(0);
      std::vector<double> g;
      double norm = 0;
      for (size_t k = 0; k < w.size(); ++k)
        g.push_back(s->net().flatDiff().diffAt(static_cast<int>(k))), norm += g[k] * g[k];
      norm = std::sqrt(norm);
      const double clip = p.clip_gradients() > 0 && norm > p.clip_gradients() ? p.clip_gradients() / norm : 1;
      EXPECT_EQ(clip<1, p.clip_gradients()> 0) << "the case should clip exactly when it says so; norm " << norm;
      for (const auto& l : s->net().learnables())
        for (int64_t k = l.offset; k < l.offset + l.blob->count(); ++k) {
          const auto j = static_cast<size_t>(k);
          double d = g[j] * clip / p.iter_size();
          const double sign = (w[j] > 0) - (w[j] < 0);
          d += p.weight_decay() * l.decayMult * (p.regularization_type() == "L1" ? sign : w[j]);
          h[j] = p.momentum() * h[j] + static_cast<double>(p.base_lr()) * l.lrMult * d;
          w[j] -= h[j];
        }
      s->applyUpdate(s->net().flatDiff().diff<double>(), 1);
      const auto got = weights(*s);
      for (size_t k = 0; k < w.size(); ++k) ASSERT_NEAR(got[k], w[k], 1e-12);
    }
  }
}

// Caffe's rules one weight at a time, written from the papers' formulas as section "Solver" of Caffe's manual gives
// them; state is the weight's own memory, t counts updates from 1.
using Rule = std::function<double(double g, double rate, int t, std::vector<double>& state)>;
const std::map<std::string, Rule>& rulesByHand() {
  static const std::map<std::string, Rule> rules = {
      {"type: 'Nesterov' momentum: 0.875",
       [](double g, double rate, int, auto& v) {
         const double before = v[0];
         v[0] = 0.875 * v[0] + rate * g;
         return v[0] + 0.875 * (v[0] - before);
       }},
      {"type: 'AdaGrad' delta: 0.0009765625",
       [](double g, double rate, int, auto& v) { return rate * g / (std::sqrt(v[0] += g * g) + 0.0009765625); }},
      {"type: 'RMSProp' rms_decay: 0.75 delta: 0.0009765625",
       [](double g, double rate, int, auto& v) {
         v[0] = 0.75 * v[0] + 0.25 * g * g;
         return rate * g / (std::sqrt(v[0]) + 0.0009765625);
       }},
      {"type: 'AdaDelta' momentum: 0.875 delta: 0.0009765625 base_lr: 1",
       [](double g, double rate, int, auto& v) {
         v[0] = 0.875 * v[0] + 0.125 * g * g;
         const double step = std::sqrt(v[1] + 0.0009765625) / std::sqrt(v[0] + 0.0009765625) * g;
         v[1] = 0.875 * v[1] + 0.125 * step * step;
         return rate * step;
       }},
      {"type: 'Adam' momentum: 0.875 momentum2: 0.9375 delta: 0.0009765625",
       [](double g, double rate, int t, auto& v) {
         v[0] = 0.875 * v[0] + 0.125 * g;
         v[1] = 0.9375 * v[1] + 0.0625 * g * g;
         return rate * std::sqrt(1 - std::pow(0.9375, t)) / (1 - std::pow(0.875, t)) * v[0] /
                (std::sqrt(v[1]) + 0.0009765625);
       }},
  };
  return rules;
}

TEST_F(SolverTest, EveryTypeIsItsFormula) {
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
          const double g = s->net().flatDiff().diffAt(static_cast<int>(k)) +
                           static_cast<double>(p.weight_decay()) * l.decayMult * w[j];
          w[j] -= rule(g, rate * l.lrMult, t, state[j]);
        }
      s->applyUpdate(s->net().flatDiff().diff<double>(), 1);
      const auto got = weights(*s);
      for (size_t k = 0; k < w.size(); ++k) ASSERT_NEAR(got[k], w[k], 1e-12);
    }
  }
}

// Also through a snapshot: types with two histories keep both.
TEST_F(SolverTest, EveryTypeResumesToTheSameBits) {
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

TEST_F(SolverTest, TypesRefuseWhatTheyDoNotTake) {
  for (const auto& [text, want] : std::vector<std::pair<std::string, std::string>>{
           {"type: 'AdaGrad' momentum: 0.9", "Momentum cannot be used with AdaGrad"},
           {"type: 'RMSProp' momentum: 0.9", "Momentum cannot be used with RMSProp"},
           {"type: 'RMSProp' rms_decay: 1", "rms_decay should lie between 0 and 1"},
           {"type: 'Adam' momentum2: 1", "momentum2 should lie"},
           {"type: 'Adam' momentum: 1.5", "momentum should lie"},
           {"type: 'Lion'", "known types: AdaDelta, AdaGrad, Adam, Nesterov, RMSProp, SGD"}}) {
    const std::string said = messageOf([&, t = text] { make(parameter(t)); });
    EXPECT_NE(said.find(want), std::string::npos) << text << ": " << said;
  }
}

TEST_F(SolverTest, IterSizeIsALargerBatch) {
  auto one = make(parameter("momentum: 0.9", 20), DType::kFloat64),
       two = make(parameter("momentum: 0.9 iter_size: 2", 10), DType::kFloat64);
  step<double>(*one, 10);
  step<double>(*two, 10);
  const auto a = weights(*one), b = weights(*two);
  for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 1e-9);
}

TEST_F(SolverTest, ResumeGivesTheSameBits) {
  const auto p =
      parameter("momentum: 0.9 weight_decay: 0.001 lr_policy: 'multistep' gamma: 0.5 stepvalue: 3 stepvalue: 9");
  auto whole = make(p);
  step<float>(*whole, 6);
  const SnapshotFiles files = whole->snapshot(folder_.file("snap"));
  step<float>(*whole, 6);
  auto resumed = make(p);
  resumed->restore(files.state, "");
  EXPECT_EQ(resumed->iteration(), 6);
  step<float>(*resumed, 6);
  EXPECT_EQ(weights(*whole), weights(*resumed));
  EXPECT_EQ(whole->lastRate(), resumed->lastRate());
}

TEST_F(SolverTest, RestoreRefusesWhatDoesNotFit) {
  auto s = make(parameter(""));
  const SnapshotFiles files = s->snapshot(folder_.file("snap"));
  EXPECT_NE(messageOf([&] { s->restore(files.model, ""); }).find("Incorrect length of history blobs"),
            std::string::npos);
  EXPECT_NE(messageOf([&] { s->restore(folder_.file("none"), ""); }).find("cannot open"), std::string::npos);
  auto other = parameter("");
  other.mutable_net_param()->mutable_layer(2)->mutable_convolution_param()->set_num_output(7);
  auto wrong = make(other);
  EXPECT_NE(
      messageOf([&] {
        wrong->copyTrainedFrom(files.model);
      }).find("Cannot copy param 0 weights from layer 'conv'; shape mismatch.  Source param shape is 6 1 3 3 (54)"),
      std::string::npos);
}

TEST_F(SolverTest, SnapshotToAFullDiskIsAStory) {
  auto s = make(parameter(""));
  rlimit was{};
  ::getrlimit(RLIMIT_FSIZE, &was);
  const rlimit little{100, was.rlim_max};
  ::signal(SIGXFSZ, SIG_IGN);
  ::setrlimit(RLIMIT_FSIZE, &little);
  const std::string m = messageOf([&] { s->snapshot(folder_.file("snap")); });
  ::setrlimit(RLIMIT_FSIZE, &was);
  EXPECT_NE(m.find("File too large (27); raise the limit of file sizes"), std::string::npos) << m;
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_.path()), {}), 1) << "the database alone";
  EXPECT_FALSE(fileExists(folder_.file("snap_iter_0.solverstate")));
}

TEST_F(SolverTest, LossThatIsNotFiniteNamesIterationAndLayer) {
  auto s = make(parameter("base_lr: 1e30"));
  const std::string m = messageOf([&] { step<float>(*s, 50); });
  EXPECT_NE(m.find("the loss is"), std::string::npos) << m;
  EXPECT_NE(m.find("in iteration "), std::string::npos) << m;
  EXPECT_NE(m.find("layer '"), std::string::npos) << m;
  EXPECT_NE(m.find("Lower base_lr"), std::string::npos) << m;
}

TEST_F(SolverTest, LossIsAveragedAsCaffeDoes) {
  auto s = make(parameter("average_loss: 3"));
  EXPECT_DOUBLE_EQ(s->smoothLoss(3), 3);
  EXPECT_DOUBLE_EQ(s->smoothLoss(5), 4);
  EXPECT_DOUBLE_EQ(s->smoothLoss(7), 5);
  EXPECT_DOUBLE_EQ(s->smoothLoss(6), 6);  // (5 + 7 + 6) / 3
}

TEST_F(SolverTest, FieldsAreJudgedBeforeAnythingStarts) {
  const struct {
    const char* text;
    const char* expected;
  } bad[] = {{"solver_mode: GPU", "Cannot use GPU in CPU-only Caffe: check mode."},
             {"type: 'Magic'", "Unknown solver type: Magic"},
             {"iter_size: 0", "iter_size must be at least 1"},
             {"regularization_type: 'L3'", "Unknown regularization type: L3"},
             {"type: 'Adam' momentum: 1", "0 <= momentum < 1, not 1"},
             {"type: 'AdaDelta' momentum: 1.5", "0 <= momentum < 1, not 1.5"},
             {"momentum: nan", "momentum should be a number"}};
  for (const auto& b : bad) {
    const std::string m = messageOf([&] { make(parameter(b.text)); });
    EXPECT_NE(m.find(b.expected), std::string::npos) << m;
  }
  auto s = parameter("test_iter: 1 test_iter: 2 test_state { }");
  EXPECT_NE(messageOf([&] { make(s); }).find("test_state is given 1 times"), std::string::npos);
  s = parameter("");
  s.clear_net_param();
  EXPECT_NE(messageOf([&] { make(s); }).find("names no net"), std::string::npos);
}

}  // namespace
}  // namespace crema::solver
