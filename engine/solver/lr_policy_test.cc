#include "solver/lr_policy.h"

#include "support/message_of.h"
#include "support/solver_fixture.h"

namespace crema::solver {
namespace {

using test::messageOf, test::solver;
using LearningRateOfSolver = test::SolverFixture;

TEST(LearningRate, EveryPolicyIsItsFormula) {
  int stage = 0;
  const auto rate = [&](const std::string& text, int i) {
    const auto p = solver("base_lr: 0.5 gamma: 0.25 power: 2 stepsize: 10 max_iter: 100 " + text);
    stage = stageAt(p, i, stage);
    return learningRate(p, i, stage);
  };
  EXPECT_DOUBLE_EQ(rate("lr_policy: 'fixed'", 77), 0.5);
  EXPECT_DOUBLE_EQ(rate("lr_policy: 'step'", 29), 0.5 / 16);
  EXPECT_DOUBLE_EQ(rate("lr_policy: 'exp'", 3), 0.5 / 64);
  EXPECT_DOUBLE_EQ(rate("lr_policy: 'inv'", 4), 0.125);
  EXPECT_DOUBLE_EQ(rate("lr_policy: 'poly'", 50), 0.125);
  EXPECT_DOUBLE_EQ(rate("lr_policy: 'sigmoid'", 10), 0.25);
  EXPECT_EQ(stage, 2);  // of policy step; the other policies have not changed it
  stage = 0;
  const std::string multi = "lr_policy: 'multistep' stepvalue: 5 stepvalue: 7";
  EXPECT_DOUBLE_EQ(rate(multi, 4), 0.5);
  EXPECT_DOUBLE_EQ(rate(multi, 5), 0.125);
  EXPECT_DOUBLE_EQ(rate(multi, 6), 0.125);
  EXPECT_DOUBLE_EQ(rate(multi, 7), 0.03125);
  EXPECT_EQ(stage, 2);
}

TEST(LearningRate, SettingsAreJudgedWithTheirNames) {
  const struct {
    const char *text, *expected;
  } bad[] = {
      {"", "lr_policy is not set; set it to exp, fixed, inv, multistep, poly, sigmoid or step, and base_lr"},
      {"lr_policy: 'magic'",
       "Unknown learning rate policy: 'magic'; set lr_policy to exp, fixed, inv, multistep, poly, sigmoid or step"},
      {"lr_policy: 'step'", "lr_policy \"step\" needs stepsize > 0, not 0"},
      {"lr_policy: 'sigmoid' gamma: -1", "lr_policy \"sigmoid\" needs stepsize > 0, not 0"},
      {"lr_policy: 'step' stepsize: 1 gamma: -1", "lr_policy \"step\" needs gamma >= 0, not -1"},
      {"lr_policy: 'exp' gamma: -0.5", "lr_policy \"exp\" needs gamma >= 0, not -0.5"},
      {"lr_policy: 'inv' gamma: -1", "lr_policy \"inv\" needs gamma >= 0, not -1"},
      {"lr_policy: 'multistep' gamma: -1", "lr_policy \"multistep\" needs gamma >= 0, not -1"},
      {"lr_policy: 'poly'", "lr_policy \"poly\" needs max_iter > 0"}};
  for (const auto& b : bad) EXPECT_EQ(messageOf([&] { checkPolicy(solver(b.text)); }), b.expected);
  checkPolicy(solver("lr_policy: 'fixed' gamma: -1"));
  checkPolicy(solver("lr_policy: 'sigmoid' gamma: -1 stepsize: 1"));
}

// rate() changes nothing and logs nothing: only an update passes a stepvalue, once, and logs it.
TEST_F(LearningRateOfSolver, IsAskedForWithoutConsequences) {
  setLogLevel(LogLevel::kInfo);
  auto s = make(parameter("lr_policy: 'multistep' gamma: 0.5 stepvalue: 0 stepvalue: 0 stepvalue: 9"));
  testing::internal::CaptureStderr();
  for (int i = 0; i < 3; ++i) EXPECT_FLOAT_EQ(static_cast<float>(s->rate()), 0.025f);
  EXPECT_EQ(testing::internal::GetCapturedStderr().find("MultiStep Status"), std::string::npos);
  testing::internal::CaptureStderr();
  step<float>(*s, 1);
  EXPECT_FLOAT_EQ(static_cast<float>(s->lastRate()), 0.025f);
  EXPECT_NE(testing::internal::GetCapturedStderr().find("MultiStep Status: Iteration 0, step = 1"), std::string::npos);
  EXPECT_FLOAT_EQ(static_cast<float>(s->rate()), 0.0125f);
  step<float>(*s, 2);
  EXPECT_FLOAT_EQ(static_cast<float>(s->lastRate()), 0.0125f);
  setLogLevel(LogLevel::kWarning);
}

}  // namespace
}  // namespace crema::solver
