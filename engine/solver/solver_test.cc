#include "solver/solver.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cmath>
#include <csignal>
#include <functional>

#include "base/error.h"
#include "base/file.h"
#include "model/proto_io.h"
#include "solver/descriptions.h"
#include "support/message_of.h"
#include "support/solver_fixture.h"

namespace crema::solver {
namespace {

using SolverTest = test::SolverFixture;
using test::messageOf;

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

// What messageOf() says of a call that can write no file of more than `bytes`.
std::string messageWithin(uint64_t bytes, const std::function<void()>& call) {
  rlimit was{};
  ::getrlimit(RLIMIT_FSIZE, &was);
  const rlimit little{bytes, was.rlim_max};
  ::signal(SIGXFSZ, SIG_IGN);
  ::setrlimit(RLIMIT_FSIZE, &little);
  const std::string m = messageOf(call);
  ::setrlimit(RLIMIT_FSIZE, &was);
  return m;
}

TEST_F(SolverTest, SnapshotToAFullDiskIsAnError) {
  auto s = make(parameter(""));
  const std::string m = messageWithin(100, [&] { s->snapshot(folder_.file("snap")); });
  EXPECT_NE(m.find("File too large (27); raise the limit of file sizes"), std::string::npos) << m;
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_.path()), {}), 1) << "the database alone";
  EXPECT_FALSE(fileExists(folder_.file("snap_iter_0.solverstate")));
}

TEST_F(SolverTest, AModelWhoseStateHasNoRoomIsKept) {
  auto s = make(parameter("type: 'Adam'"));  // its state is twice the model
  const std::string model = s->saveModel(folder_.file("model"));
  const uint64_t size = std::filesystem::file_size(model);
  const std::string m = messageWithin(size, [&] { s->snapshot(folder_.file("snap")); });
  EXPECT_NE(m.find("while saving the solver state of iteration 0; its model is saved: " +
                   folder_.file("snap_iter_0.caffemodel")),
            std::string::npos)
      << m;
  EXPECT_EQ(readFile(folder_.file("snap_iter_0.caffemodel")), readFile(model));
  EXPECT_FALSE(fileExists(folder_.file("snap_iter_0.solverstate")));
  EXPECT_NE(messageWithin(size, [&] { s->snapshot(folder_.file("snap"), "hdfs:/published"); }), "no error");
  EXPECT_FALSE(fileExists(folder_.file("snap_iter_0.caffemodel"))) << "of what is published, nothing is left";
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
             {"momentum: nan", "momentum should be a number, not nan"},
             {"base_lr: nan", "base_lr should be a number, not nan"},
             {"clip_gradients: -nan", "clip_gradients should be a number, not nan"}};
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

// They compute in the memory of training, and so do the tops of their data layers, which each pass writes anew.
TEST_F(SolverTest, TestsBetweenStepsAreThoseOfNetsWithMemoryOfTheirOwn) {
  const auto p = parameter("test_iter: 3 test_interval: 1");
  SolverOptions options;
  options.kernels = &kernels_, options.seed = 3, options.log = false;
  Solver planned(p, options);
  options.hostLooks = true;
  Solver plain(p, options);
  bool lent = false;
  for (int i = 0; i < 4; ++i) {
    for (int64_t batch : {2 * i, 2 * i + 1}) EXPECT_EQ(planned.testBatch(0, batch), plain.testBatch(0, batch));
    const std::vector<double> tested = test::valuesOf(planned.testNet(0).blob("data"));
    for (Solver* s : {&planned, &plain}) step<float>(*s, 1);
    lent |= test::valuesOf(planned.testNet(0).blob("data")) != tested;
  }
  EXPECT_TRUE(lent);
  EXPECT_EQ(weights(planned), weights(plain));
}

}  // namespace
}  // namespace crema::solver
