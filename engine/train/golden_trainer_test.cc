// Whole runs against BVLC Caffe's Solver::Solve, which tests/goldens/trainer/caffe.golden holds (recipe beside it):
// displayed losses with average_loss, the outputs of one and of several test nets chosen by test_state, and at the end
// all weights and the running statistics of a batch normalisation. Within 1e-5: its batches of three records make
// roundings larger (3e-6 was seen), and Caffe's log has six digits.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <sstream>

#include "base/log.h"
#include "model/proto_io.h"
#include "support/golden_values.h"
#include "train/trainer.h"

namespace crema::train {
namespace {

const std::string kFolder = CREMA_SOURCE_DIR "/tests/goldens/trainer/";

// Numbers by what they are: "loss 4", "test 0 5 accuracy", "array 2 17".
using Numbers = std::map<std::string, double>;

Numbers readGolden(std::istream& in) {
  Numbers all;
  int arrays = 0;
  for (std::string line; in.peek() != 'c' && std::getline(in, line);) {
    std::istringstream words(line);
    std::string kind;
    words >> kind;
    if (kind != "array") {
      const size_t last = line.rfind(' ');
      all[line.substr(0, last)] = std::atof(line.c_str() + last);
      continue;
    }
    int k = 0;
    for (double v; words >> v; ++k) all[fmt::format("array {} {}", arrays, k)] = v;
    ++arrays;
  }
  return all;
}

TrainHooks recorders(Numbers& all, int display) {
  TrainHooks hooks;
  hooks.progress = [&all, display](const Progress& p) {
    if (p.iteration % display == 0) all[fmt::format("loss {}", p.iteration)] = p.loss;
  };
  hooks.test = [&all](int64_t iteration, int net, const std::vector<TestOutput>& outputs) {
    double loss = 0;
    for (const TestOutput& o : outputs) {
      all[fmt::format("test {} {} {}", net, iteration, o.name)] = o.values.at(0);
      loss += o.lossWeight * o.values.at(0);
    }
    all[fmt::format("test {} {} whole-loss", net, iteration)] = loss;
  };
  return hooks;
}

Numbers run(const std::string& text) {
  auto p = model::parseText<caffe::SolverParameter>(text, "case");
  for (std::string* net : {p.mutable_net(), p.mutable_train_net()})
    if (!net->empty()) *net = kFolder + *net;
  for (auto& net : *p.mutable_test_net()) net = kFolder + net;
  if (p.net().empty()) p.clear_net();
  if (p.train_net().empty()) p.clear_train_net();
  p.set_snapshot_after_train(false);
  kernels::Context kernels(kernels::bestIsa(), 1);
  solver::SolverOptions o;
  o.kernels = &kernels, o.log = false, o.folder = kFolder;
  o.trainData.folder = o.testData.folder = kFolder;
  solver::Solver solver(p, o);
  int which = 100;
  for (const auto& l : solver.net().learnables()) {
    for (int k = 0; k < l.blob->count(); ++k) l.blob->mutableData<float>()[k] = golden::value("p", which, k);
    ++which;
  }
  Numbers all;
  Trainer(solver, nullptr, {}, recorders(all, p.display())).run();
  int array = 0;
  for (const auto& l : solver.net().learnables()) {
    for (int k = 0; k < l.blob->count(); ++k) all[fmt::format("array {} {}", array, k)] = l.blob->dataAt(k);
    ++array;
  }
  return all;
}

TEST(Differential, TrainerRunsAsCaffesSolve) {
  setLogLevel(LogLevel::kWarning);
  std::ifstream in(kFolder + "cases.txt"), golden(kFolder + "caffe.golden");
  int cases = 0;
  for (std::string line, name; std::getline(in, line);) {
    if (line.empty() || line[0] == '#') continue;
    const auto column = golden::split(line, '|');
    SCOPED_TRACE(column[0]);
    std::getline(golden, name);
    ASSERT_EQ(name, "case " + column[0]);
    const Numbers want = readGolden(golden);
    Numbers got = run(column[1]);
    double worst = 0;
    for (const auto& [what, value] : want) {
      ASSERT_TRUE(got.count(what)) << what;
      const double error = std::fabs(got[what] - value) / std::max(1.0, std::fabs(value));
      EXPECT_LE(error, 1e-5) << what << ": " << got[what] << ", Caffe has " << value;
      worst = std::max(worst, error);
      got.erase(what);
    }
    for (const auto& [what, value] : got)
      if (what.find("whole-loss") == std::string::npos) ADD_FAILURE() << "Caffe has no " << what;
    std::printf("differential run %-24s %zu values, largest error %.1e of the value or of 1\n", column[0].c_str(),
                want.size(), worst);
    ++cases;
  }
  EXPECT_GE(cases, 4);
  EXPECT_EQ(golden.peek(), std::ifstream::traits_type::eof());
  setLogLevel(LogLevel::kInfo);
}

}  // namespace
}  // namespace crema::train
