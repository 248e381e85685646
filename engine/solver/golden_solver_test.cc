// Every solver type with every policy, clipping, iter_size, L1, shared weights and running statistics against BVLC
// Caffe: 20 iterations, whose losses and weights tests/goldens/solvers/caffe.golden holds (recipe beside it).
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "base/file.h"
#include "base/log.h"
#include "model/proto_io.h"
#include "solver/solver.h"
#include "support/golden_values.h"
#include "support/largest.h"

namespace crema::solver {
namespace {

const std::string kFolder = CREMA_SOURCE_DIR "/tests/goldens/solvers/";

void put(Blob& blob, const std::string& filling, int which) {
  for (int k = 0; k < blob.count(); ++k) blob.mutableData<float>()[k] = golden::value(filling, which, k);
}

std::vector<float> run(const std::string& net, const std::string& text) {
  auto p = model::parseText<caffe::SolverParameter>(text, "case");
  p.set_net(kFolder + net + ".prototxt");
  p.set_solver_mode(caffe::SolverParameter::CPU);
  kernels::Context kernels(kernels::bestIsa(), 1);
  SolverOptions o;
  o.kernels = &kernels, o.log = false;
  Solver solver(p, o);
  int which = 100;
  for (const auto& l : solver.net().learnables()) put(*l.blob, "s", which++);
  std::vector<float> losses, weights;
  for (int iteration = 0; iteration < 20; ++iteration) {
    put(solver.net().blob("x"), "s", iteration);
    put(solver.net().blob("label"), "l3", iteration);
    solver.computeGradient(0);
    losses.push_back(static_cast<float>(solver.net().blob("loss").dataAt(0)));
    solver.applyUpdate(solver.net().flatDiff().diff<float>(), 1);
    if (iteration != 4 && iteration != 19) continue;
    for (const auto& l : solver.net().learnables())
      for (int k = 0; k < l.blob->count(); ++k) weights.push_back(static_cast<float>(l.blob->dataAt(k)));
  }
  losses.insert(losses.end(), weights.begin(), weights.end());
  return losses;
}

TEST(Differential, SolversMoveAsCaffesDo) {
  setLogLevel(LogLevel::kWarning);
  const std::string bytes = readFile(kFolder + "caffe.golden");
  std::ifstream in(kFolder + "cases.txt");
  size_t at = 0, cases = 0;
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line[0] == '#') continue;
    const auto column = golden::split(line, '|');
    SCOPED_TRACE(column[0]);
    const auto got = run(column[1], column[2]);
    ASSERT_LE(at + 4 * got.size(), bytes.size());
    std::vector<float> want(got.size());
    std::memcpy(want.data(), bytes.data() + at, 4 * want.size());
    at += 4 * want.size();
    double worst = 0;
    for (size_t k = 0; k < got.size(); ++k)
      worst = test::larger(worst, std::fabs(static_cast<double>(got[k]) - want[k]) /
                                      std::max(1.0, std::fabs(static_cast<double>(want[k]))));
    EXPECT_LE(worst, 1e-6);
    std::printf("differential %-28s %2zu values, largest error %.1e of the value or of 1\n", column[0].c_str(),
                got.size(), worst);
    ++cases;
  }
  EXPECT_EQ(at, bytes.size());
  EXPECT_GE(cases, 76u);
  setLogLevel(LogLevel::kInfo);
}

}  // namespace
}  // namespace crema::solver
