// The captioning net's stages choose the layers that BVLC Caffe chooses: tests/goldens/stages.
#include <gtest/gtest.h>

#include <sstream>

#include "base/file.h"
#include "model/filter.h"
#include "model/proto_io.h"
#include "model/upgrade.h"
#include "solver/descriptions.h"

namespace crema {
namespace {

const std::string kExamples = CREMA_SOURCE_DIR "/examples";

std::string line(const caffe::NetParameter& net, const caffe::NetState& state) {
  std::ostringstream out;
  out << caffe::Phase_Name(state.phase());
  for (const auto& stage : state.stage()) out << " " << stage;
  out << ":";
  const caffe::NetParameter kept = filterNet(net, state);
  for (const auto& layer : kept.layer()) {
    out << " " << layer.name() << "(";
    for (int i = 0; i < layer.bottom_size(); ++i) out << (i ? "," : "") << layer.bottom(i);
    out << ")";
    if (layer.param_size()) out << "*" << layer.param(0).lr_mult();
  }
  return out.str();
}

// The state that a line of the golden is about.
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
  const auto solver = readText<caffe::SolverParameter>(kExamples + "/lrcn_solver.prototxt");
  const NetDescription train = trainDescription(solver, kExamples);
  EXPECT_EQ(line(train.param, train.state), golden[0]);
  const auto tests = testDescriptions(solver, kExamples);
  ASSERT_EQ(tests.size(), 1u);
  EXPECT_EQ(line(tests[0].param, tests[0].state), golden[1]);
  const auto net = readNet(kExamples + "/lrcn_cos.prototxt");
  for (const auto& want : golden) EXPECT_EQ(line(net, stateOf(want)), want);
}

}  // namespace
}  // namespace crema
