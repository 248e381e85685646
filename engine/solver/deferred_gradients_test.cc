// Gradients of inner products' weights that are left to the update: the bits of a run whose host may look at them.
#include <gtest/gtest.h>

#include <algorithm>

#include "support/solver_fixture.h"

namespace crema::solver {
namespace {

constexpr const char* kNet = R"(
  layer { name: "data" type: "Data" top: "data" top: "label" data_param { source: "SOURCE" backend: LMDB batch_size: 10 }
          transform_param { scale: 0.0078125 } }
  layer { name: "plain" type: "InnerProduct" bottom: "data" top: "plain" param { decay_mult: 2 } param { lr_mult: 2 decay_mult: 0 }
          inner_product_param { num_output: 33 weight_filler { type: "xavier" } } }
  layer { name: "relu" type: "ReLU" bottom: "plain" top: "plain" }
  layer { name: "drop" type: "Dropout" bottom: "plain" top: "plain" }
  layer { name: "turned" type: "InnerProduct" bottom: "plain" top: "turned"
          inner_product_param { num_output: 20 transpose: true weight_filler { type: "xavier" } } }
  layer { name: "flat" type: "Flatten" bottom: "turned" top: "flat" }
  layer { name: "twice" type: "InnerProduct" bottom: "flat" top: "twice" param { name: "w" } param { name: "b" }
          inner_product_param { num_output: 20 weight_filler { type: "xavier" } } }
  layer { name: "again" type: "InnerProduct" bottom: "twice" top: "again" param { name: "w" } param { name: "b" }
          inner_product_param { num_output: 20 weight_filler { type: "xavier" } } }
  layer { name: "fixed" type: "InnerProduct" bottom: "again" top: "fixed" param { lr_mult: 0 } param { lr_mult: 0 }
          inner_product_param { num_output: 12 weight_filler { type: "xavier" } } }
  layer { name: "sum" type: "Eltwise" bottom: "fixed" bottom: "side" top: "sum" }
  layer { name: "last" type: "InnerProduct" bottom: "sum" top: "last"
          inner_product_param { num_output: 4 bias_term: false weight_filler { type: "xavier" } } }
  layer { name: "loss" type: "SoftmaxWithLoss" bottom: "last" bottom: "label" top: "loss" })";

class DeferredGradients : public test::SolverFixture {
 protected:
  caffe::SolverParameter of(const std::string& settings) {
    auto s =
        test::solver("base_lr: 0.05 lr_policy: 'fixed' max_iter: 1000 random_seed: 3 weight_decay: 0.01 " + settings);
    std::string text = kNet;
    text.replace(text.find("SOURCE"), 6, folder_.file("db"));
    // "plain" has a second reader, whose Split is below a layer of each kind.
    const std::string side =
        "layer { name: 'side' type: 'InnerProduct' bottom: 'plain' top: 'side' inner_product_param { num_output: 12 "
        "weight_filler { type: 'xavier' } } } ";
    text.insert(text.find("layer { name: \"turned\""), side);
    *s.mutable_net_param() = model::parseText<caffe::NetParameter>(text, "net");
    return s;
  }
  std::unique_ptr<Solver> make(const caffe::SolverParameter& p, bool hostLooks, int ranks = 1) {
    SolverOptions o;
    o.kernels = &kernels_, o.seed = 3, o.log = false, o.hostLooks = hostLooks;
    o.trainData.ranks = ranks;
    return std::make_unique<Solver>(p, o);
  }
  // The numbers in the gradients of parameters that are not zero.
  static int64_t gradients(Solver& s) {
    const float* all = s.net().flatDiff().diff<float>();
    return std::count_if(all, all + s.net().flatData().count(), [](float g) { return g != 0; });
  }
};

TEST_F(DeferredGradients, WeightsAndHistoriesHaveTheBitsOfARunWithThem) {
  for (const char* type :
       {"type: 'SGD' momentum: 0.9", "type: 'Nesterov' momentum: 0.9 regularization_type: 'L1'", "type: 'AdaGrad'",
        "type: 'RMSProp' rms_decay: 0.98", "type: 'AdaDelta' momentum: 0.95 delta: 1e-6",
        "type: 'Adam' momentum: 0.9 momentum2: 0.999"}) {
    const auto p = of(type);
    auto without = make(p, false), with = make(p, true);
    ASSERT_TRUE(without->defersGradients() && !with->defersGradients());
    step<float>(*without, 5), step<float>(*with, 5);
    EXPECT_EQ(weights(*without), weights(*with)) << type;
    EXPECT_EQ(test::valuesOf(without->history()), test::valuesOf(with->history())) << type;
    // Of 64 x 33 + 33 x 20 + 33 x 12 + 12 x 4 weights there are none, of the shared ones and of biases there are.
    EXPECT_LT(gradients(*without), 20 * 20 + 33 + 20 + 12 + 20 + 1);
    EXPECT_GT(gradients(*without), 100);
    EXPECT_GT(gradients(*with), 1000);
  }
}

TEST_F(DeferredGradients, WhereMoreThanTheUpdateReadsThemTheyAreThere) {
  for (const char* more : {"clip_gradients: 0.1", "iter_size: 2", "snapshot_diff: true"}) {
    const auto p = of(more);
    auto planned = make(p, false), with = make(p, true);
    EXPECT_FALSE(planned->defersGradients()) << more;
    step<float>(*planned, 3), step<float>(*with, 3);
    EXPECT_EQ(weights(*planned), weights(*with)) << more;
    EXPECT_GT(gradients(*planned), 1000) << more;
  }
  EXPECT_FALSE(make(of(""), false, 2)->defersGradients());
}

// Iterations whose gradients are shown have them, between others that have not.
TEST_F(DeferredGradients, IterationsThatShowThemHaveThem) {
  auto p = of("momentum: 0.9 debug_info: true display: 2");
  SolverOptions o;
  o.kernels = &kernels_, o.seed = 3, o.log = true;
  Solver shown(p, o);
  auto with = make(of("momentum: 0.9"), true);
  for (int i = 0; i < 4; ++i) {
    step<float>(shown, 1), step<float>(*with, 1);
    if (i % 2 == 0) {
      EXPECT_GT(gradients(shown), 1000) << i;
    }
    EXPECT_EQ(weights(shown), weights(*with)) << i;
  }
}

}  // namespace
}  // namespace crema::solver
