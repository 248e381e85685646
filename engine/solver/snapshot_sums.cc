#include "solver/snapshot_sums.h"

#include <cstdint>

#include "base/error.h"
#include "base/file_sum.h"
#include "base/packet_sum.h"

namespace crema::solver {
namespace {

uint64_t sumOfHistory(const caffe::SolverState& state) {
  const int64_t at[] = {state.iter(), state.current_step()};
  uint64_t sum = packetSum(at, sizeof at, 0);
  for (const caffe::BlobProto& blob : state.history()) {
    sum = packetSum(blob.data().data(), static_cast<size_t>(blob.data_size()) * sizeof(float), sum);
    sum = packetSum(blob.double_data().data(), static_cast<size_t>(blob.double_data_size()) * sizeof(double), sum);
  }
  return sum;
}

}  // namespace

caffe::SnapshotSums sumsOf(const caffe::SolverState& state, const std::string& model) {
  caffe::SnapshotSums sums;
  sums.set_model(fileSum(model)), sums.set_history(sumOfHistory(state));
  return sums;
}

void checkState(const caffe::SolverState& state, const std::string& path) {
  if (state.sums().has_history() && state.sums().history() != sumOfHistory(state))
    badData("{} is damaged: its values are not those that were saved; move it away and resume from another snapshot",
            path);
}

void checkModel(const caffe::SolverState& state, const std::string& path, const std::string& model) {
  if (state.sums().has_model() && state.sums().model() != fileSum(model))
    badData(
        "{} is not the model that was saved with {}: it is damaged, or was changed since; move it away and resume from "
        "another snapshot; on Spark a model of another name, passed with -weights, is taken as it is",
        model, path);
}

}  // namespace crema::solver
