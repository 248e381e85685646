// States select the layers that BVLC Caffe selects: the captioning net's stages (tests/goldens/stages), and a state in
// the net, in train_state and in test_state, phases too (tests/goldens/states).
#include <gtest/gtest.h>

#include <sstream>

#include "base/file.h"
#include "model/filter.h"
#include "model/proto_io.h"
#include "model/upgrade.h"
#include "solver/descriptions.h"
#include "solver/solver.h"
#include "support/golden_values.h"

namespace crema::solver {
namespace {

const std::string kExamples = CREMA_SOURCE_DIR "/examples";

std::string line(const caffe::NetParameter& net, const caffe::NetState& state) {
  std::ostringstream out;
  out << caffe::Phase_Name(state.phase());
  for (const auto& stage : state.stage()) out << " " << stage;
  out << ":";
  const caffe::NetParameter kept = model::filterNet(net, state);
  for (const auto& layer : kept.layer()) {
    out << " " << layer.name() << "(";
    for (int i = 0; i < layer.bottom_size(); ++i) out << (i ? "," : "") << layer.bottom(i);
    out << ")";
    if (layer.param_size()) out << "*" << layer.param(0).lr_mult();
  }
  return out.str();
}

// Parses the state in a line of the golden.
caffe::NetState stateOf(const std::string& golden) {
  std::istringstream words(golden.substr(0, golden.find(':')));
  std::string word;
  words >> word;
  caffe::NetState state;
  state.set_phase(word == "TRAIN" ? caffe::TRAIN : caffe::TEST);
  while (words >> word) state.add_stage(word);
  return state;
}

TEST(Stages, OfTheCaptioningNetSelectCaffesLayers) {
  std::istringstream file(readFile(CREMA_SOURCE_DIR "/tests/goldens/stages/layers.txt"));
  std::vector<std::string> golden;
  for (std::string text; std::getline(file, text);) golden.push_back(text);
  ASSERT_EQ(golden.size(), 12u);
  const auto solver = model::readText<caffe::SolverParameter>(kExamples + "/lrcn_solver.prototxt");
  const NetDescription train = trainDescription(solver, kExamples);
  EXPECT_EQ(line(train.param, train.state), golden[0]);
  const auto tests = testDescriptions(solver, kExamples);
  ASSERT_EQ(tests.size(), 1u);
  EXPECT_EQ(line(tests[0].param, tests[0].state), golden[1]);
  NetDescription scoring = scoringDescription(solver, kExamples);
  EXPECT_EQ(line(scoring.param, scoring.state), golden[1]);
  caffe::SolverParameter untested = solver;  // without a test net the net of training scores, in phase TEST
  untested.clear_test_iter(), untested.clear_test_state();
  scoring = scoringDescription(untested, kExamples);
  EXPECT_EQ(scoring.state.phase(), caffe::TEST);
  EXPECT_EQ(scoring.state.stage_size(), train.state.stage_size());
  EXPECT_EQ(scoring.origin, train.origin);
  const auto net = model::readNet(kExamples + "/lrcn_cos.prototxt");
  for (const auto& want : golden) EXPECT_EQ(line(net, stateOf(want)), want);
}

std::string keptAndLoss(net::Net& net) {
  std::ostringstream out;
  out << caffe::Phase_Name(net.phase());
  const double loss = net.forward();
  for (const auto& layer : net.layers()) out << " " << layer->name();
  out << " " << loss;
  return out.str();
}

TEST(Differential, StatesMergeAsInCaffe) {
  const std::string folder = CREMA_SOURCE_DIR "/tests/goldens/states/";
  const std::string net = readFile(folder + "net.prototxt");
  std::istringstream cases(readFile(folder + "cases.txt")), golden(readFile(folder + "caffe.txt"));
  kernels::Context kernels(kernels::bestIsa(), 1);
  SolverOptions o;
  o.kernels = &kernels, o.log = false;
  int count = 0;
  for (std::string text; std::getline(cases, text);) {
    if (text[0] == '#') continue;
    SCOPED_TRACE(text);
    const auto column = golden::split(text, '|');
    Solver solver(model::parseText<caffe::SolverParameter>(
                      "base_lr: 0.1 lr_policy: 'fixed' max_iter: 1 test_iter: 1 test_interval: 1 solver_mode: CPU "
                      "net_param {" +
                          column[0] + net + "} " + (column.size() > 1 ? column[1] : ""),
                      "case"),
                  o);
    for (net::Net* made : {&solver.net(), &solver.testNet(0)}) {
      std::string want;
      ASSERT_TRUE(std::getline(golden, want));
      EXPECT_EQ(keptAndLoss(*made), want);
    }
    ++count;
  }
  EXPECT_EQ(count, 7);
}

}  // namespace
}  // namespace crema::solver
