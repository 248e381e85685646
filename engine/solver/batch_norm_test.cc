// Running statistics under the solver, against Caffe's recurrence in double on the same batches.
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "model/proto_io.h"
#include "solver/solver.h"
#include "support/message_of.h"
#include "support/records.h"
#include "support/shared_data.h"

namespace crema::solver {
namespace {

// Mean sums, variance sums, weight.
struct Running {
  std::vector<double> mean, variance;
  double weight = 0;
  void pass(double kept, const Running& batch) {
    for (size_t d = 0; d < mean.size(); ++d) {
      mean[d] = kept * mean[d] + batch.mean[d];
      variance[d] = kept * variance[d] + batch.variance[d];
    }
    weight = kept * weight + batch.weight;
  }
  void add(double times, const Running& other) {
    for (size_t d = 0; d < mean.size(); ++d) mean[d] += times * other.mean[d], variance[d] += times * other.variance[d];
    weight += times * other.weight;
  }
};

// The statistics of one batch, with the unbiased variance.
Running of(const Blob& x) {
  const auto channels = static_cast<size_t>(x.shape()[1]), inner = static_cast<size_t>(x.shape().count(2)),
             all = static_cast<size_t>(x.count());
  const auto m = static_cast<double>(all / channels);
  Running r{std::vector<double>(channels), std::vector<double>(channels), 1};
  for (size_t i = 0; i < all; ++i) r.mean[i / inner % channels] += x.dataAt(static_cast<int>(i)) / m;
  for (size_t i = 0; i < all; ++i)
    r.variance[i / inner % channels] +=
        std::pow(x.dataAt(static_cast<int>(i)) - r.mean[i / inner % channels], 2) / (m - 1);
  return r;
}

constexpr double kKept = 0.75;

class BatchNormTest : public testing::Test {
 protected:
  void SetUp() override { test::writeLearnableRecords(folder_.file("db"), 200); }

  std::unique_ptr<Solver> make(const std::string& extra, const std::string& layers = "", int ranks = 1) {
    auto p = model::parseText<caffe::SolverParameter>(
        "base_lr: 0.05 lr_policy: 'fixed' max_iter: 100 momentum: 0.9 test_iter: 1 test_interval: 100", "solver");
    p.MergeFrom(model::parseText<caffe::SolverParameter>(extra, "extra"));
    const std::string data =
        "layer { name: 'data' type: 'Data' top: 'data' top: 'label' transform_param { scale: 0.0078125 } data_param { "
        "source: '" +
        folder_.file("db") + "' batch_size: 10 backend: LMDB } }\n";
    *p.mutable_net_param() = model::parseText<caffe::NetParameter>(data + R"(
      layer { name: 'conv' type: 'Convolution' bottom: 'data' top: 'conv' convolution_param { num_output: 5 kernel_size: 3 stride: 2 weight_filler { type: 'xavier' } } }
      layer { name: 'bn' type: 'BatchNorm' bottom: 'conv' top: 'bn' param { name: 'm' lr_mult: 0 } param { name: 'v' lr_mult: 0 } param { name: 't' lr_mult: 0 } batch_norm_param { moving_average_fraction: 0.75 } }
      layer { name: 'scale' type: 'Scale' bottom: 'bn' top: 'bn' scale_param { bias_term: true } }
      layer { name: 'relu' type: 'ReLU' bottom: 'bn' top: 'bn' })" + layers +
                                                                       R"(
      layer { name: 'ip' type: 'InnerProduct' bottom: 'bn' top: 'ip' inner_product_param { num_output: 4 weight_filler { type: 'xavier' } } }
      layer { name: 'loss' type: 'SoftmaxWithLoss' bottom: 'ip' bottom: 'label' top: 'loss' })",
                                                                   "net");
    SolverOptions o;
    o.kernels = &kernels_, o.dtype = DType::kFloat64, o.seed = 3, o.log = false;
    o.hostLooks = true;  // all blobs of the test net are looked at
    o.trainData.ranks = ranks, o.trainData.myRanks.clear();
    for (int r = 0; r < ranks; ++r) o.trainData.myRanks.push_back(r);
    return std::make_unique<Solver>(p, o);
  }
  static Running none() { return {std::vector<double>(5), std::vector<double>(5), 0}; }
  static void expectStatistics(Solver& s, const Running& want) {
    const auto& params = s.net().layers()[2]->params();
    ASSERT_EQ(s.net().layers()[2]->type(), "BatchNorm");
    for (int d = 0; d < 5; ++d) {
      EXPECT_NEAR(params[0]->dataAt(d), want.mean[static_cast<size_t>(d)], 1e-12);
      EXPECT_NEAR(params[1]->dataAt(d), want.variance[static_cast<size_t>(d)], 1e-12);
    }
    EXPECT_NEAR(params[2]->dataAt(0), want.weight, 1e-12);
  }

  test::TemporaryFolder folder_;
  kernels::Context kernels_{kernels::bestIsa(), 1};
};

// Clipping and decay do not apply to running statistics.
TEST_F(BatchNormTest, OneRankMovesThemAsCaffeDoes) {
  for (const char* extra : {"", "clip_gradients: 0.001 weight_decay: 0.5", "type: 'Adam' momentum2: 0.99 delta: 0.1"}) {
    auto s = make(extra);
    Running want = none();
    for (int i = 0; i < 4; ++i) {
      s->computeGradient(0);
      want.pass(kKept, of(s->net().blob("conv")));
      s->applyUpdate(s->net().flatDiff().diff<double>(), 1);
      expectStatistics(*s, want);
    }
  }
}

// Clipping must find the norm of gradients alone: statistics are far larger than 0.
TEST_F(BatchNormTest, TheyDoNotCountInTheClippingNorm) {
  auto s = make("clip_gradients: 0.001 momentum: 0 base_lr: 1");
  s->computeGradient(0);
  double squares = 0;
  for (const auto& p : s->net().learnables())
    for (int i = 0; !p.keptPerPass && i < p.blob->count(); ++i) squares += std::pow(p.blob->diffAt(i), 2);
  const auto& first = s->net().learnables()[0];
  const double before = first.blob->dataAt(0), g = first.blob->diffAt(0);
  s->applyUpdate(s->net().flatDiff().diff<double>(), 1);
  EXPECT_NEAR(before - first.blob->dataAt(0), g * 0.001f / std::sqrt(squares), 1e-14);
}

TEST_F(BatchNormTest, IterSizeIsSeveralPasses) {
  auto one = make("base_lr: 0 iter_size: 3"), three = make("base_lr: 0");
  Running want = none();
  for (int i = 0; i < 6; ++i) {
    three->computeGradient(0);
    want.pass(kKept, of(three->net().blob("conv")));
    three->applyUpdate(three->net().flatDiff().diff<double>(), 1);
    if (i % 3 != 2) continue;
    one->computeGradient(0);
    one->applyUpdate(one->net().flatDiff().diff<double>(), 1);
    expectStatistics(*one, want);
  }
}

TEST_F(BatchNormTest, RanksCountAlike) {
  constexpr int kRanks = 3;
  auto s = make("", "", kRanks);
  Running want = none();
  for (int i = 0; i < 3; ++i) {
    std::vector<double> sum(static_cast<size_t>(s->net().flatDiff().count()));
    Running mean = none();
    for (int rank = 0; rank < kRanks; ++rank) {
      s->computeGradient(rank);
      mean.add(1.0 / kRanks, of(s->net().blob("conv")));
      for (size_t k = 0; k < sum.size(); ++k) sum[k] += s->net().flatDiff().diffAt(static_cast<int>(k));
    }
    want.pass(kKept, mean);
    s->applyUpdate(sum.data(), kRanks);
    expectStatistics(*s, want);
  }
}

// Two layers that share statistics update them one after the other, as in Caffe.
TEST_F(BatchNormTest, SharedStatisticsMoveWithEachLayer) {
  auto s = make("",
                "layer { name: 'bn2' type: 'BatchNorm' bottom: 'conv' top: 'bn2' param { name: 'm' lr_mult: 0 } param "
                "{ name: 'v' lr_mult: 0 } param { name: 't' lr_mult: 0 } batch_norm_param { moving_average_fraction: "
                "0.5 } }\nlayer { name: 'nothing' type: 'Silence' bottom: 'bn2' }");
  Running want = none();
  const auto bnAfterSplit = [&] {
    for (const auto& layer : s->net().layers())
      if (layer->name() == "bn") return layer->params();
    throw std::logic_error("no bn");
  };
  for (int i = 0; i < 3; ++i) {
    s->computeGradient(0);
    want.pass(kKept, of(s->net().blob("conv")));
    want.pass(0.5, of(s->net().blob("conv")));
    s->applyUpdate(s->net().flatDiff().diff<double>(), 1);
    for (int d = 0; d < 5; ++d) EXPECT_NEAR(bnAfterSplit()[0]->dataAt(d), want.mean[static_cast<size_t>(d)], 1e-12);
    EXPECT_NEAR(bnAfterSplit()[2]->dataAt(0), want.weight, 1e-12);
  }
  const std::string said = test::messageOf(
      [&] { make("", "layer { name: 'b' type: 'Bias' bottom: 'bn' top: 'bn' param { name: 'm' lr_mult: 0 } }"); });
  EXPECT_NE(said.find("one is learnt, the other holds running statistics"), std::string::npos) << said;
}

TEST_F(BatchNormTest, TestsUseThemAndLeaveThemAlone) {
  auto s = make("");
  Running want = none();
  for (int i = 0; i < 3; ++i) {
    s->computeGradient(0);
    want.pass(kKept, of(s->net().blob("conv")));
    s->applyUpdate(s->net().flatDiff().diff<double>(), 1);
  }
  s->testBatch(0, 0);
  expectStatistics(*s, want);
  const Blob &x = s->testNet(0).blob("conv"), &y = s->testNet(0).blob("bn");
  const auto& scale = s->testNet(0).layers()[3]->params();
  ASSERT_GT(x.count(), 0);
  for (int i = 0; i < x.count(); ++i) {
    const auto d = static_cast<size_t>(i / x.shape().count(2) % 5);
    const double z = (x.dataAt(i) - want.mean[d] / want.weight) / std::sqrt(want.variance[d] / want.weight + 1e-5f);
    ASSERT_NEAR(y.dataAt(i),
                std::max(0.0, scale[0]->dataAt(static_cast<int>(d)) * z + scale[1]->dataAt(static_cast<int>(d))), 1e-9);
  }
}

}  // namespace
}  // namespace crema::solver
