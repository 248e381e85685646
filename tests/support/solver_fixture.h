// Solvers of a small net on records that it can learn.
#pragma once
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "base/log.h"
#include "model/proto_io.h"
#include "solver/solver.h"
#include "support/records.h"
#include "support/shared_data.h"
#include "support/values_of.h"

namespace crema::test {

inline caffe::SolverParameter solver(const std::string& text) {
  return model::parseText<caffe::SolverParameter>(text, "solver");
}

class SolverFixture : public testing::Test {
 protected:
  static void SetUpTestSuite() { setLogLevel(LogLevel::kWarning); }
  static void TearDownTestSuite() { setLogLevel(LogLevel::kInfo); }
  void SetUp() override { writeLearnableRecords(folder_.file("db"), 200); }

  caffe::SolverParameter parameter(const std::string& extra, int batch = 10) {
    auto s = solver("base_lr: 0.05 lr_policy: 'fixed' max_iter: 1000 random_seed: 3 solver_mode: CPU");
    s.MergeFrom(solver(extra));  // the later value of a field wins
    *s.mutable_net_param() =
        model::parseText<caffe::NetParameter>(learnableNet(folder_.file("db"), folder_.file("db"), batch), "net");
    return s;
  }
  std::unique_ptr<crema::solver::Solver> make(const caffe::SolverParameter& p, DType dtype = DType::kFloat32) {
    crema::solver::SolverOptions o;
    o.kernels = &kernels_;
    o.dtype = dtype;
    o.seed = static_cast<uint64_t>(p.random_seed());
    o.log = false;
    return std::make_unique<crema::solver::Solver>(p, o);
  }
  template <class T>
  static void step(crema::solver::Solver& s, int times) {
    for (int i = 0; i < times; ++i) {
      s.computeGradient(0);
      s.applyUpdate(s.net().flatDiff().diff<T>(), 1);
    }
  }
  static std::vector<double> weights(crema::solver::Solver& s) { return valuesOf(s.net().flatData()); }

  TemporaryFolder folder_;
  kernels::Context kernels_{kernels::bestIsa(), 1};
};

}  // namespace crema::test
