// Snapshots: <prefix>_iter_<n>.caffemodel (caffe.NetParameter) and <prefix>_iter_<n>.solverstate (caffe.SolverState:
// iter, learned_net, history in learnable order, current_step, our origin and sums), both with .h5 where snapshot_format is
// HDF5. The model is written first: a state never names a model that is not there.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <regex>

#include "base/file.h"
#include "base/log.h"
#include "base/temporary.h"
#include "base/text.h"
#include "model/hdf5_file.h"
#include "model/trained.h"
#include "solver/descriptions.h"
#include "solver/snapshot_sums.h"
#include "solver/solver.h"

#include <filesystem>
#include <map>
#include <optional>

namespace crema::solver {

void clearSnapshotLeftovers(const std::string& prefix) {
  static const std::regex kName("_iter_\\d+\\.(caffemodel|solverstate)(\\.h5)?");
  clearLeftovers(prefix, [](std::string_view rest) { return std::regex_match(rest.begin(), rest.end(), kName); });
}

void Solver::copyTrainedFrom(const std::string& weights) {
  std::vector<std::string> paths;
  for (const std::string& file : net::trainedFiles(weights)) paths.push_back(resolvePath(file, options_.folder));
  std::vector<net::Net*> tests;
  for (auto& test : testNets_) tests.push_back(test.get());
  net::copyTrainedFiles(*net_, paths, tests, options_.log);
}

namespace {

// All states and their models, by iteration.
std::map<int64_t, SnapshotFiles> snapshotsWith(const std::string& prefix) {
  const std::filesystem::path all(prefix);
  const std::string begin = all.filename().string() + "_iter_";
  std::map<int64_t, SnapshotFiles> found;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(parentDirectory(prefix), none)) {
    const std::string name = entry.path().filename().string();
    for (const std::string ending : {".solverstate", ".solverstate.h5"}) {
      if (name.rfind(begin, 0) != 0 || name.size() <= begin.size() + ending.size() || !name.ends_with(ending)) continue;
      const std::string number = name.substr(begin.size(), name.size() - begin.size() - ending.size());
      if (number.size() > 9 || number.find_first_not_of("0123456789") != std::string::npos) continue;
      std::string model = entry.path().string();
      model.replace(model.size() - ending.size(), 12, ".caffemodel");
      found[std::stoll(number)] = {model, entry.path().string()};
    }
  }
  return found;
}

// Why it cannot be resumed from; empty: it can, as far as files tell. A machine without power may leave such ones, a disk that
// fails, or a person who tidies up; what is in them is judged when they are restored.
std::string flawOf(const SnapshotFiles& files) {
  try {
    if (!fileExists(files.model)) return fmt::format("its model {} is missing", files.model);
    const caffe::SolverState state = model::readState(files.state);
    checkState(state, files.state);
    checkModel(state, files.state, files.model);
    model::useTrained(files.model, [&](const model::Trained& trained) {
      if (trained.net.layer_size() == 0) badData("{} is empty", files.model);
    });
    return "";
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::kData && e.kind() != ErrorKind::kIo) throw;
    return e.what();
  }
}

}  // namespace

std::optional<SnapshotFiles> newestSnapshot(const std::string& prefix) {
  const auto found = snapshotsWith(prefix);
  std::string ofNewest;
  for (auto s = found.rbegin(); s != found.rend(); ++s) {
    const std::string flaw = flawOf(s->second);
    if (flaw.empty()) return s->second;
    LOG_WARNING("the snapshot {} is passed over: {}", s->second.state, flaw);
    if (ofNewest.empty()) ofNewest = flaw;
  }
  if (!found.empty())
    badData(
        "-resume auto: none of the snapshots {}_iter_N.solverstate can be resumed from; of the newest, {}. Put back "
        "what is missing, or move these files away to begin anew",
        prefix, ofNewest);
  return std::nullopt;
}

namespace {

// Whether a state knows its own model from another one of that name.
bool hasSums(const std::string& state) {
  try {
    return fileExists(state) && model::readState(state).sums().has_model();
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

SnapshotFiles Solver::snapshotNames(const std::string& prefix) const {
  const std::string stem = fmt::format("{}_iter_{}", prefix, iteration());
  const model::SnapshotFormat format = param_.snapshot_format();
  return {model::nameFor(stem + ".caffemodel", format), model::nameFor(stem + ".solverstate", format)};
}

// The loss is looked at before each update, so the last one has been looked at by nobody.
void Solver::checkFinite() const {
  withType(options_.dtype, [&]<class T>() {
    for (const auto& p : net_->learnables()) {
      const T* values = p.blob->data<T>();
      if (std::all_of(values, values + p.blob->count(), [](T v) { return std::isfinite(v); })) continue;
      invalid(
          "parameter {} has values that are not finite behind iteration {}; no model is written. Lower base_lr "
          "(now {}), set clip_gradients, or check the data; older snapshots are whole",
          p.label, iteration(), param_.base_lr());
    }
  });
}

std::string Solver::saveModel(const std::string& path) const {
  checkFinite();
  const model::SnapshotFormat format = param_.snapshot_format();
  const std::string name = model::nameFor(path, format);
  const bool ownersOnly = format == caffe::SolverParameter::HDF5;
  inside([&] { return fmt::format("while saving the model of iteration {}", iteration()); },
         [&] { model::writeModel(name, net_->toProto(param_.snapshot_diff(), ownersOnly), format); });
  return name;
}

caffe::SolverState Solver::state(const std::string& model) const {
  caffe::SolverState state;
  state.set_iter(iteration());
  state.set_learned_net(model);
  state.set_current_step(currentStep_);
  *state.mutable_origin() = origin();
  for (int h = 0; h < history_.shape()[0]; ++h)
    for (const auto& p : net_->learnables()) {
      Blob part(p.blob->shape(), options_.dtype);
      withType(options_.dtype, [&]<class T>() {
        std::copy_n(history_.data<T>() + historyAt(h, p), part.count(), part.mutableData<T>());
      });
      layers::toProto(part, false, state.add_history());
    }
  return state;
}

SnapshotFiles Solver::snapshot(const std::string& prefix, const std::string& publishedPrefix) {
  const SnapshotFiles files = snapshotNames(prefix);
  const model::SnapshotFormat format = param_.snapshot_format();
  const char* kind = format == caffe::SolverParameter::HDF5 ? "HDF5" : "binary proto";
  if (options_.log) LOG_INFO("Snapshotting to {} file {}", kind, files.model);
  if (!hasSums(files.state)) std::remove(files.state.c_str());  // it would be a pair with the new model until the end
  saveModel(files.model);
  caffe::SolverState now = state(publishedPrefix.empty() ? files.model : snapshotNames(publishedPrefix).model);
  *now.mutable_sums() = sumsOf(now, files.model);
  if (options_.log) LOG_INFO("Snapshotting solver state to {} file {}", kind, files.state);
  // The weights of hours are kept where only their state cannot be; a staged one nobody would find.
  const bool staged = !publishedPrefix.empty();
  const auto kept = staged ? "" : fmt::format("; its model is saved: {}", files.model);
  inside([&] { return fmt::format("while saving the solver state of iteration {}{}", iteration(), kept); },
         [&] {
           try {
             model::writeState(files.state, now, format);
           } catch (const Error&) {
             if (staged) std::remove(files.model.c_str());
             throw;
           }
         });
  return files;
}

namespace {

// learned_net is relative to the working folder of the run that wrote it; if it is not there, the model is looked for
// beside the state.
std::string modelOf(const std::string& path, const std::string& learnedNet) {
  const std::string named = resolvePath(learnedNet, parentDirectory(path));
  const std::string stem = path.substr(0, path.rfind(".solverstate"));
  if (!fileExists(named))
    for (const char* end : {".caffemodel", ".caffemodel.h5"})
      if (fileExists(stem + end)) return stem + end;
  if (named.empty())
    invalid("{} names no learned_net, and no .caffemodel of its name is beside it; put it there", path);
  if (!fileExists(named))
    ioError("there is no {}, which {} names as its model, and none beside it; put its .caffemodel there", named, path);
  return named;
}

std::string nameOf(const std::string& path) { return std::filesystem::path(path).filename().string(); }

}  // namespace

void Solver::restore(const std::string& path, const std::string& model) {
  restore(model::readState(path), path, model);
}

void Solver::restore(const caffe::SolverState& state, const std::string& path, const std::string& model,
                     const std::string& modelName) {
  const auto& learnables = net_->learnables();
  checkState(state, path);
  if (state.iter() < 0 || state.current_step() < 0)
    badData("{} claims iteration {}, step {}; it is damaged: take another snapshot", path, state.iter(),
            state.current_step());
  const auto wanted = static_cast<size_t>(history_.shape()[0]) * learnables.size();
  if (static_cast<size_t>(state.history_size()) != wanted)
    invalid(
        "Incorrect length of history blobs. {} holds {}, {} of {} parameters has {}; is it the .solverstate of this "
        "net "
        "and solver type (not its .caffemodel)?",
        path, state.history_size(), param_.type(), learnables.size(), wanted);
  const auto models =
      model.empty() ? std::vector<std::string>{modelOf(path, state.learned_net())} : net::trainedFiles(model);
  const std::string& name = modelName.empty() ? models[0] : modelName;
  if (models.size() == 1 && nameOf(name) == nameOf(state.learned_net())) checkModel(state, path, models[0]);
  // Caffe says SGDSolver for every type.
  if (options_.log && !model::isHdf5(path)) LOG_INFO("SGDSolver: restoring history");
  for (size_t i = 0; i < wanted; ++i) {
    const auto& proto = state.history(static_cast<int>(i));
    const auto& parameter = learnables[i % learnables.size()];
    if (!layers::shapeMatches(proto, parameter.blob->shape()))
      invalid(
          "history blob {} of {} has shape {}, parameter {} has {}; resume with the net that it was taken of, or begin "
          "anew from the weights beside it (-weights), which layers of other shapes must not bear the names of",
          i, path, layers::shapeOf(proto).brief(), parameter.label, parameter.blob->shape().brief());
    Blob part(parameter.blob->shape(), options_.dtype);
    layers::fromProto(proto, part);
    const int64_t at = historyAt(static_cast<int>(i / learnables.size()), parameter);
    withType(options_.dtype,
             [&]<class T>() { std::copy_n(part.data<T>(), part.count(), history_.mutableData<T>() + at); });
  }
  net::copyTrainedFiles(*net_, models);
  iteration_ = state.iter();
  currentStep_ = state.current_step();
}

}  // namespace crema::solver
