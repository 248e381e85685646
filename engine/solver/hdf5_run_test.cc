// HDF5 snapshots: those of Caffe, and ours compared with binary ones (real runs: real_runs_test.cc).
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/sha256.h"
#include "model/hdf5_file.h"
#include "model/proto_io.h"
#include "model/upgrade.h"
#include "solver/solver.h"
#include "support/message_of.h"
#include "support/records.h"
#include "support/shared_data.h"
#include "support/values_of.h"

namespace crema::solver {
namespace {

using test::messageOf;

struct Quiet {
  Quiet() { setLogLevel(LogLevel::kWarning); }
  ~Quiet() { setLogLevel(LogLevel::kInfo); }
};

std::unique_ptr<Solver> make(kernels::Context& kernels, const caffe::SolverParameter& p, const std::string& folder,
                             DType dtype = DType::kFloat32) {
  SolverOptions o;
  o.kernels = &kernels, o.log = false, o.folder = folder, o.dtype = dtype;
  o.seed = static_cast<uint64_t>(p.random_seed());
  return std::make_unique<Solver>(p, o);
}

double step(Solver& s) {
  const double loss = s.computeGradient(0);
  s.applyUpdate(s.net().flatDiff().diff<float>(), 1);
  return loss;
}

// tests/goldens/caffe_snapshots/make: a net with shared weights, trained by BVLC Caffe.
class Goldens : public testing::Test {
 protected:
  Goldens() : param_(model::readSolver(dir_ + "/solver.prototxt")) {}
  std::unique_ptr<Solver> fresh(bool h5 = false) {
    if (h5) param_.set_snapshot_format(caffe::SolverParameter::HDF5);
    return make(kernels_, param_, dir_);
  }
  const Quiet quiet_;
  const std::string dir_ = CREMA_SOURCE_DIR "/tests/goldens/caffe_snapshots";
  caffe::SolverParameter param_;
  kernels::Context kernels_{kernels::bestIsa(), 1};
  test::TemporaryFolder folder_;
};

TEST_F(Goldens, BothFormatsOfCaffeHoldTheSame) {
  auto a = fresh(), b = fresh();
  a->restore(dir_ + "/tiny_iter_2.solverstate", "");
  b->restore(dir_ + "/tiny_iter_2.solverstate.h5", "");
  EXPECT_EQ(a->iteration(), 2);
  EXPECT_EQ(test::valuesOf(a->net().flatData()), test::valuesOf(b->net().flatData()));
  EXPECT_EQ(test::valuesOf(a->history()), test::valuesOf(b->history()));
}

TEST_F(Goldens, ResumesAsCaffeWentOn) {
  std::ifstream in(dir_ + "/losses.txt");
  std::vector<double> logged;
  for (std::string line; std::getline(in, line);) logged.push_back(std::stod(line.substr(line.rfind(' '))));
  ASSERT_EQ(logged.size(), 6u);
  const auto theirs = model::readNetBinary(dir_ + "/tiny_iter_6.caffemodel");
  for (const char* state : {"/tiny_iter_2.solverstate", "/tiny_iter_2.solverstate.h5"}) {
    auto s = fresh();
    s->restore(dir_ + state, "");
    for (size_t i = 2; i < 6; ++i) EXPECT_NEAR(step(*s), logged[i], 1e-5 * logged[i]) << state << " " << i;
    int compared = 0;
    for (const auto& layer : theirs.layer())
      for (const auto& mine : s->net().learnables())
        for (int b = 0; b < layer.blobs_size(); ++b)
          if (mine.label == fmt::format("{}/{}", layer.name(), b)) {
            for (int k = 0; k < mine.blob->count(); ++k, ++compared)
              EXPECT_NEAR(mine.blob->dataAt(k), layer.blobs(b).data(k), 2e-6) << mine.label;
          }
    EXPECT_EQ(compared, 54 + 3 + 450 + 6 + 36 + 6);
  }
}

TEST_F(Goldens, FormatsConvertBackAndForthWithoutAChangedBit) {
  auto binary = fresh();
  binary->restore(dir_ + "/tiny_iter_2.solverstate", "");
  auto h5 = fresh(true);
  const auto first = binary->snapshot(folder_.file("a"));
  h5->restore(first.state, "");
  const auto second = h5->snapshot(folder_.file("b"));
  EXPECT_EQ(second.model, folder_.file("b_iter_2.caffemodel.h5"));
  EXPECT_EQ(second.state, folder_.file("b_iter_2.solverstate.h5"));
  binary->restore(second.state, "");
  const auto third = binary->snapshot(folder_.file("c"));
  EXPECT_EQ(sha256Hex(readFile(first.model)), sha256Hex(readFile(third.model)));
  h5->restore(third.state, "");
  const auto fourth = h5->snapshot(folder_.file("d"));
  EXPECT_EQ(readFile(second.model), readFile(fourth.model)) << "no times are stored";
  // Our files have Caffe's layout: the same groups, datasets, shapes, values.
  const std::string ours = readFile(second.model), caffes = readFile(dir_ + "/tiny_iter_2.caffemodel.h5");
  const MutexLock lock(model::hdf5Mutex());
  const model::Hdf5Reader a(ours, "ours"), b(caffes, "Caffe's");
  int datasets = 0;
  const auto compare = [&](const auto& self, const std::string& path) -> void {
    const auto left = a.list(path), right = b.list(path);
    ASSERT_EQ(left.size(), right.size()) << path;
    for (size_t i = 0; i < left.size(); ++i) {
      const std::string name = path + "/" + left[i].name;
      ASSERT_EQ(left[i].name, right[i].name);
      ASSERT_EQ(left[i].group, right[i].group) << name;
      if (left[i].group) {
        self(self, name);
        continue;
      }
      caffe::BlobProto x, y;
      a.readBlob(name, &x), b.readBlob(name, &y);
      EXPECT_EQ(x.SerializeAsString(), y.SerializeAsString()) << name;
      ++datasets;
    }
  };
  compare(compare, "data");
  EXPECT_EQ(datasets, 6) << "conv, ip and one; two borrows from one";
}

TEST_F(Goldens, BorrowedBlobsMayBeAbsentOwnedOnesNot) {
  auto s = fresh();
  auto trained = model::readTrained(dir_ + "/tiny_iter_2.caffemodel.h5");
  auto* layers = trained.net.mutable_layer();
  for (auto& layer : *layers)
    if (layer.name() == "ip") layer.mutable_blobs()->RemoveLast();
  EXPECT_NE(messageOf([&] {
              s->net().copyTrainedFrom(trained, "m.h5");
            }).find("Incompatible number of blobs for layer ip: m.h5 has 1 (0), the net needs 2"),
            std::string::npos);
}

TEST_F(Goldens, ModelAndStateAreNotMixedUp) {
  auto s = fresh();
  const std::string model = dir_ + "/tiny_iter_2.caffemodel", state = dir_ + "/tiny_iter_2.solverstate";
  EXPECT_NE(messageOf([&] { s->restore(model, ""); }).find("Incorrect length of history blobs"), std::string::npos);
  EXPECT_NE(messageOf([&] { s->restore(model + ".h5", ""); }).find("pass it with -weights"), std::string::npos);
  EXPECT_NE(messageOf([&] { s->copyTrainedFrom(state); }).find("pass it with -snapshot"), std::string::npos);
  EXPECT_NE(messageOf([&] { s->copyTrainedFrom(state + ".h5"); }).find("pass it with -snapshot"), std::string::npos);
  EXPECT_NE(messageOf([&] { s->copyTrainedFrom(" , "); }).find("name no file"), std::string::npos);
}

TEST_F(Goldens, FormatIsSeenInTheFileNotInItsName) {
  std::filesystem::copy_file(dir_ + "/tiny_iter_2.caffemodel.h5", folder_.file("a.caffemodel"));
  std::filesystem::copy_file(dir_ + "/tiny_iter_2.caffemodel", folder_.file("b.h5"));
  auto a = fresh(), b = fresh();
  a->copyTrainedFrom(folder_.file("a.caffemodel"));
  b->copyTrainedFrom(" " + dir_ + "/tiny_iter_6.caffemodel , " + folder_.file("b.h5"));
  EXPECT_EQ(test::valuesOf(a->net().flatData()), test::valuesOf(b->net().flatData()))
      << "the last file of the list wins";
}

TEST_F(Goldens, FinalModelIsNamedByItsFormat) {
  EXPECT_EQ(fresh()->saveModel(folder_.file("m.caffemodel.h5")), folder_.file("m.caffemodel"));
  EXPECT_EQ(fresh(true)->saveModel(folder_.file("m.caffemodel")), folder_.file("m.caffemodel.h5"));
  EXPECT_EQ(fresh(true)->saveModel(folder_.file("n.h5")), folder_.file("n.h5"));
  for (const char* name : {"m.caffemodel", "m.caffemodel.h5", "n.h5"}) EXPECT_TRUE(fileExists(folder_.file(name)));
}

TEST_F(Goldens, LayerNamesThatHdf5CannotHoldAreRefusedAtTheStart) {
  param_.set_snapshot_format(caffe::SolverParameter::HDF5);
  auto net = model::readNet(dir_ + "/net.prototxt");
  net.mutable_layer(3)->set_name("conv/0");
  param_.clear_net(), *param_.mutable_net_param() = net;
  EXPECT_NE(messageOf([&] { fresh(); }).find("snapshot_format: BINARYPROTO"), std::string::npos);
  param_.set_snapshot_format(caffe::SolverParameter::BINARYPROTO);
  fresh();
}

TEST_F(Goldens, DoubleNetsAndGradientsAreKept) {
  param_.set_snapshot_format(caffe::SolverParameter::HDF5);
  param_.set_snapshot_diff(true);
  auto s = make(kernels_, param_, dir_, DType::kFloat64);
  s->computeGradient(0);
  const auto files = s->snapshot(folder_.file("d"));
  auto t = make(kernels_, param_, dir_, DType::kFloat64);
  t->restore(files.state, "");
  EXPECT_EQ(test::valuesOf(s->net().flatData()), test::valuesOf(t->net().flatData()));
  const std::string bytes = readFile(files.model);
  const MutexLock lock(model::hdf5Mutex());
  const model::Hdf5Reader in(bytes, "d");
  EXPECT_FALSE(in.has("data/two/0"));
  caffe::BlobProto diff;
  in.readBlob("diff/two/0", &diff);  // gradients of borrowed blobs are written, as Caffe does
  EXPECT_EQ(diff.double_data_size(), 36);
}

}  // namespace
}  // namespace crema::solver
