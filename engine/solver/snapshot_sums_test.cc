#include "solver/snapshot_sums.h"

#include <gtest/gtest.h>

#include <functional>

#include "base/error.h"
#include "base/file.h"
#include "model/trained.h"
#include "support/message_of.h"
#include "support/solver_fixture.h"

namespace crema::solver {
namespace {

class SnapshotSumsTest : public test::SolverFixture {};

// Both formats give one sum of the history, and what lies on the disk agrees with it.
TEST_F(SnapshotSumsTest, StatesCarryTheSumsOfWhatWasWritten) {
  std::vector<uint64_t> histories;
  for (const DType dtype : {DType::kFloat32, DType::kFloat64})
    for (const char* format : {"snapshot_format: BINARYPROTO", "snapshot_format: HDF5"}) {
      auto s = make(parameter(format), dtype);
      dtype == DType::kFloat32 ? step<float>(*s, 2) : step<double>(*s, 2);
      const SnapshotFiles files = s->snapshot(folder_.file("snap"));
      const auto state = model::readState(files.state);
      EXPECT_EQ(state.sums().SerializeAsString(), sumsOf(state, files.model).SerializeAsString()) << format;
      EXPECT_NE(state.sums().model(), 0u);
      checkState(state, files.state), checkModel(state, files.state, files.model);
      histories.push_back(state.sums().history());
    }
  EXPECT_EQ(histories[0], histories[1]);
  EXPECT_EQ(histories[2], histories[3]);
  EXPECT_NE(histories[0], histories[2]);
}

TEST_F(SnapshotSumsTest, AnyChangedValueIsFound) {
  auto s = make(parameter(""));
  step<float>(*s, 2);
  const SnapshotFiles files = s->snapshot(folder_.file("snap"));
  const auto state = model::readState(files.state);
  const std::vector<std::function<void(caffe::SolverState*)>> changes = {
      [](auto* t) { t->set_iter(t->iter() + 1); },
      [](auto* t) { t->set_current_step(1); },
      [](auto* t) { t->mutable_history(0)->set_data(0, 0.5f); },
      [](auto* t) {
        auto* last = t->mutable_history(t->history_size() - 1);
        last->set_data(last->data_size() - 1, -0.25f);
      },
      [](auto* t) { t->mutable_history()->RemoveLast(); },
  };
  for (size_t i = 0; i < changes.size(); ++i) {
    caffe::SolverState changed = state;
    changes[i](&changed);
    EXPECT_NE(test::messageOf([&] { checkState(changed, "x.solverstate"); }).find("x.solverstate is damaged"),
              std::string::npos)
        << i;
  }
  std::string model = readFile(files.model);
  for (const size_t at : {size_t{0}, model.size() / 2, model.size() - 1}) {
    std::string changed = model;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    writeFileAtomically(files.model, changed);
    EXPECT_NE(test::messageOf([&] { s->restore(files.state, ""); }).find("is not the model that was saved with"),
              std::string::npos)
        << at;
  }
  const std::string other = folder_.file("other.caffemodel");
  std::string changed = model;
  changed[model.size() / 2] = static_cast<char>(changed[model.size() / 2] ^ 1);
  writeFileAtomically(other, changed);
  s->restore(files.state, other);
  EXPECT_NE(test::messageOf([&] {
              s->restore(state, files.state, other, "x/snap_iter_2.caffemodel");
            }).find("other.caffemodel is not the model"),
            std::string::npos)
      << "a copy of it";
  writeFileAtomically(files.model, model);
  s->restore(files.state, "");
}

TEST_F(SnapshotSumsTest, StatesOfCaffeHaveNone) {
  for (const char* end : {"", ".h5"}) {
    const std::string file = CREMA_SOURCE_DIR "/tests/goldens/caffe_snapshots/tiny_iter_2.solverstate";
    const auto state = model::readState(file + end);
    EXPECT_FALSE(state.has_sums());
    checkState(state, file), checkModel(state, file, "not there");
  }
}

}  // namespace
}  // namespace crema::solver
