// Snapshots: <prefix>_iter_<n>.caffemodel (caffe.NetParameter) and <prefix>_iter_<n>.solverstate (caffe.SolverState:
// iter, learned_net, history in learnable order, current_step). The model is written first: a state never names a model
// that is not there.
#include <cstdio>

#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "model/proto_io.h"
#include "model/upgrade.h"
#include "solver/descriptions.h"
#include "solver/solver.h"

namespace crema {

void Solver::copyTrainedFrom(const std::string& weights) {
  for (const std::string& path : splitList(weights)) {
    const caffe::NetParameter trained = readNetBinary(path);
    if (options_.log) LOG_INFO("Finetuning from {}", path);
    net_->copyTrainedFrom(trained, path);
    for (auto& test : testNets_) test->copyTrainedFrom(trained, path);
  }
}

SnapshotFiles Solver::snapshotNames(const std::string& prefix) const {
  const std::string stem = fmt::format("{}_iter_{}", prefix, iteration_);
  return {stem + ".caffemodel", stem + ".solverstate"};
}

void Solver::saveModel(const std::string& path) const {
  inside([&] { return fmt::format("while saving the model of iteration {}", iteration_); },
         [&] { writeBinary(path, net_->toProto(param_.snapshot_diff())); });
}

SnapshotFiles Solver::snapshot(const std::string& prefix, const std::string& publishedPrefix) {
  const SnapshotFiles files = snapshotNames(prefix);
  if (options_.log) LOG_INFO("Snapshotting to binary proto file {}", files.model);
  saveModel(files.model);
  caffe::SolverState state;
  state.set_iter(iteration_);
  state.set_learned_net(publishedPrefix.empty() ? files.model : snapshotNames(publishedPrefix).model);
  state.set_current_step(currentStep_);
  for (const auto& p : net_->learnables()) {
    Blob part(p.blob->shape(), options_.dtype);
    withType(options_.dtype,
             [&]<class T>() { std::copy_n(history_.data<T>() + p.offset, part.count(), part.mutableData<T>()); });
    toProto(part, false, state.add_history());
  }
  if (options_.log) LOG_INFO("Snapshotting solver state to binary proto file {}", files.state);
  inside([&] { return fmt::format("while saving the solver state of iteration {}", iteration_); },
         [&] {
           try {
             writeBinary(files.state, state);
           } catch (const Error&) {
             std::remove(files.model.c_str());  // half a snapshot is none
             throw;
           }
         });
  return files;
}

void Solver::restore(const std::string& path, const std::string& model) {
  if (path.size() > 3 && path.substr(path.size() - 3) == ".h5")
    invalid("{}: HDF5 snapshots are not read by this version; resume from a binary .solverstate", path);
  const auto state = readBinary<caffe::SolverState>(path);
  const auto& learnables = net_->learnables();
  if (state.iter() < 0 || state.current_step() < 0)
    badData("{} claims iteration {}, step {}; it is damaged: take another snapshot", path, state.iter(),
            state.current_step());
  if (state.history_size() != static_cast<int>(learnables.size()))
    invalid(
        "Incorrect length of history blobs. {} holds {}, the net has {} parameters; is it the .solverstate of this net "
        "(not its .caffemodel)?",
        path, state.history_size(), learnables.size());
  for (size_t i = 0; i < learnables.size(); ++i) {
    const auto& proto = state.history(static_cast<int>(i));
    if (!shapeMatches(proto, learnables[i].blob->shape()))
      invalid("history blob {} of {} has shape {}, parameter {} has {}", i, path, shapeOf(proto).brief(),
              learnables[i].label, learnables[i].blob->shape().brief());
    Blob part(learnables[i].blob->shape(), options_.dtype);
    fromProto(proto, part);
    withType(options_.dtype, [&]<class T>() {
      std::copy_n(part.data<T>(), part.count(), history_.mutableData<T>() + learnables[i].offset);
    });
  }
  // learned_net was written relative to the working folder of then; beside the state is where people move it to.
  std::string weights = model.empty() ? resolvePath(state.learned_net(), parentDirectory(path)) : model;
  if (model.empty() && !fileExists(weights)) {
    const std::string stem = path.substr(0, path.rfind(".solverstate"));
    if (fileExists(stem + ".caffemodel")) weights = stem + ".caffemodel";
  }
  if (weights.empty()) invalid("{} names no learned_net; pass its .caffemodel with -weights", path);
  net_->copyTrainedFrom(readNetBinary(weights), weights);
  iteration_ = state.iter();
  currentStep_ = state.current_step();
}

}  // namespace crema
