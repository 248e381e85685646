#include "solver/origin.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"
#include "model/trained.h"
#include "support/solver_fixture.h"

namespace crema::solver {
namespace {

class OriginTest : public test::SolverFixture {
 protected:
  // What tells a run with more settings, or a changed net, from the plain one.
  std::string changedBy(const std::string& settings) { return changedBy(parameter(settings)); }
  std::string changedBy(const caffe::SolverParameter& p) {
    return difference(make(parameter(""))->origin(), make(p)->origin());
  }
};

TEST_F(OriginTest, SettingsThatChangeNoWeightDoNotCount) {
  for (const char* neutral :
       {"max_iter: 7", "display: 3", "snapshot: 5", "snapshot_prefix: 'x'", "snapshot_format: HDF5", "average_loss: 9",
        "test_iter: 2 test_interval: 5", "debug_info: true", "snapshot_after_train: false", "snapshot_diff: true"})
    EXPECT_EQ(changedBy(neutral), "") << neutral;
}

TEST_F(OriginTest, SettingsThatChangeWeightsCount) {
  for (const char* other : {"base_lr: 0.06", "momentum: 0.5", "weight_decay: 0.1", "iter_size: 2", "type: 'Adam'",
                            "lr_policy: 'step' gamma: 0.1 stepsize: 3", "clip_gradients: 1"})
    EXPECT_EQ(changedBy(other).find("solver settings ("), 0u) << other;
  EXPECT_EQ(changedBy("random_seed: 4"), "random_seed (3, here 4)");
}

TEST_F(OriginTest, MaxIterCountsWhereTheRateDependsOnIt) {
  const auto of = [&](int last) {
    return make(parameter(fmt::format("lr_policy: 'poly' power: 1 max_iter: {}", last)))->origin();
  };
  EXPECT_EQ(difference(of(10), of(20)), "solver settings (max_iter: 10, here max_iter: 20)");
  EXPECT_EQ(difference(of(10), of(10)), "");
}

TEST_F(OriginTest, SettingsThatDifferAreNamed) {
  const auto of = [&](const std::string& settings) { return make(parameter(settings))->origin(); };
  EXPECT_EQ(difference(of("base_lr: 0.06 clip_gradients: 1"), of("base_lr: 0.5 weight_decay: 0.1")),
            "solver settings (base_lr: 0.06, here base_lr: 0.5; no weight_decay, here weight_decay: 0.1; "
            "clip_gradients: 1, here none)");
  caffe::StateOrigin older = of("base_lr: 0.06");
  older.clear_settings();
  EXPECT_EQ(difference(older, of("base_lr: 0.5")), "solver settings");
}

TEST_F(OriginTest, TheNetCountsAsTrainingHasIt) {
  auto p = parameter("");
  auto* layers = p.mutable_net_param()->mutable_layer();
  p.mutable_net_param()->set_name("another name");
  for (auto& layer : *layers)
    if (layer.type() == "Data") layer.mutable_data_param()->set_prefetch(9);
  auto* accuracy = p.mutable_net_param()->add_layer();
  accuracy->set_name("more"), accuracy->set_type("Accuracy");
  accuracy->add_include()->set_phase(caffe::TEST);
  EXPECT_EQ(changedBy(p), "") << "names, prefetching, and layers of tests alone";
  for (auto& layer : *layers)
    if (layer.type() == "Convolution") layer.mutable_convolution_param()->mutable_weight_filler()->set_type("gaussian");
  EXPECT_EQ(changedBy(p), "net");
}

TEST_F(OriginTest, RecordsCountAndNotWhereTheyLie) {
  const auto reading = [&](const std::string& path) {
    auto p = parameter("");
    for (auto& layer : *p.mutable_net_param()->mutable_layer())
      if (layer.type() == "Data") layer.mutable_data_param()->set_source(path);
    return p;
  };
  test::writeLearnableRecords(folder_.file("moved"), 200);
  EXPECT_EQ(changedBy(reading(folder_.file("moved"))), "");
  test::writeLearnableRecords(folder_.file("more"), 201);
  EXPECT_EQ(changedBy(reading(folder_.file("more"))), "records");
  test::writeLearnableRecords(folder_.file("others"), 200, 3);
  EXPECT_EQ(changedBy(reading(folder_.file("others"))), "records");
  for (const size_t changed : {0, 1, 100, 198, 199}) {
    auto all = test::datums(folder_.file("moved"));
    std::string pixels = all[changed].data();
    pixels.back() = static_cast<char>(pixels.back() + 1);
    all[changed].set_data(pixels);
    const std::string path = folder_.file(fmt::format("changed{}", changed));
    data::LmdbWriter writer(path);
    for (size_t i = 0; i < all.size(); ++i) writer.put(fmt::format("{:05d}", i), all[i].SerializeAsString());
    writer.finish();
    EXPECT_EQ(changedBy(reading(path)), "records") << changed;
  }
}

TEST_F(OriginTest, WhatAMeanFileHoldsCounts) {
  const auto from = [&](const std::string& folder, float first) {
    caffe::BlobProto mean;
    for (const int d : {1, 1, 8, 8}) mean.mutable_shape()->add_dim(d);
    for (int i = 0; i < 64; ++i) mean.add_data(i == 0 ? first : 1.f);
    std::filesystem::create_directory(folder_.file(folder));
    const std::string file = folder_.file(folder) + "/mean.binaryproto";
    writeFileAtomically(file, mean.SerializeAsString());
    auto p = parameter("");
    for (auto& layer : *p.mutable_net_param()->mutable_layer())
      if (layer.type() == "Data") layer.mutable_transform_param()->set_mean_file(file);
    return make(p)->origin();
  };
  EXPECT_EQ(difference(from("here", 1), from("there", 1)), "");
  EXPECT_EQ(difference(from("here", 1), from("there", 2)), "records");
}

TEST(Origin, OfRowsOfAHostTheSourcesNameTells) {
  const auto from = [](const std::string& source, const std::string& test) {
    caffe::NetState training;
    training.set_phase(caffe::TRAIN);
    return digestOfRecords(
        {"200 records"},
        model::parseText<caffe::NetParameter>("layer { name: 'd' type: 'MemoryData' memory_data_param { source: '" +
                                                  source + "' } include { phase: TRAIN } } " + test +
                                                  "layer { name: 'l' bottom: 'a' infogain_loss_param { source: 'h' } }",
                                              "net"),
        training);
  };
  const std::string test =
      "layer { name: 't' type: 'MemoryData' memory_data_param { source: 't' } include { phase: TEST } } ";
  EXPECT_EQ(from("a.parquet", ""), from("a.parquet", test));
  EXPECT_NE(from("a.parquet", ""), from("b.parquet", ""));
}

TEST_F(OriginTest, RanksCountAndWorkersDoNot) {
  const auto of = [&](int ranks, std::vector<int> mine) {
    const auto p = parameter("");
    SolverOptions o;
    o.kernels = &kernels_, o.log = false, o.seed = 3;
    o.trainData.ranks = ranks, o.trainData.myRanks = std::move(mine);
    return Solver(p, o).origin();
  };
  EXPECT_EQ(difference(of(4, {0, 1, 2, 3}), of(4, {2})), "");
  EXPECT_EQ(difference(of(4, {0}), of(2, {0})), "ranks (4, here 2)");
}

TEST_F(OriginTest, BothFormatsOfAStateCarryIt) {
  for (const char* format : {"snapshot_format: BINARYPROTO", "snapshot_format: HDF5"}) {
    auto s = make(parameter(format));
    const auto state = model::readState(s->snapshot(folder_.file("snap")).state);
    ASSERT_TRUE(state.has_origin()) << format;
    EXPECT_EQ(state.origin().SerializeAsString(), s->origin().SerializeAsString()) << format;
    EXPECT_FALSE(state.origin().net().empty() || state.origin().solver().empty() || state.origin().records().empty());
  }
  for (const char* end : {"", ".h5"})
    EXPECT_FALSE(
        model::readState(CREMA_SOURCE_DIR "/tests/goldens/caffe_snapshots/tiny_iter_2.solverstate" + std::string(end))
            .has_origin())
        << "Caffe's own";
}

}  // namespace
}  // namespace crema::solver
