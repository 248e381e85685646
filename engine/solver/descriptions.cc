#include "solver/descriptions.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/random_bytes.h"
#include "model/filter.h"
#include "model/upgrade.h"
#include "solver/lr_policy.h"
#include "solver/rules.h"

namespace crema::solver {

namespace {

// The solver's phase, then the net's state, then train_state or test_state: a later one overrides fields, stages add
// up.
caffe::NetState stateOf(caffe::Phase phase, const caffe::NetParameter& net, const caffe::NetState* given) {
  caffe::NetState state;
  state.set_phase(phase);
  state.MergeFrom(net.state());
  if (given) state.MergeFrom(*given);
  return state;
}

caffe::NetParameter fromFile(const std::string& path, const std::string& folder) {
  return model::readNet(resolvePath(path, folder));
}

}  // namespace

NetDescription trainDescription(const caffe::SolverParameter& s, const std::string& folder,
                                const std::string& inlined) {
  const int given = s.has_train_net_param() + s.has_train_net() + s.has_net_param() + s.has_net();
  if (given == 0) invalid("the solver names no net; give one of net, net_param, train_net, train_net_param");
  if (given > 1)
    invalid("the solver names {} train nets; give exactly one of net, net_param, train_net, train_net_param", given);
  NetDescription d;
  if (s.has_train_net_param()) d.param = s.train_net_param();
  if (s.has_net_param()) d.param = s.net_param();
  if (s.has_train_net()) d.param = fromFile(s.train_net(), folder);
  if (s.has_net()) d.param = fromFile(s.net(), folder);
  const caffe::SolverParameter written = withoutInlined(s, inlined);
  const std::string field = written.has_net() || written.has_net_param() ? "net" : "train_net";
  const bool file = written.has_net() || written.has_train_net();
  d.origin = !file ? field + "_param" : netOrigin(written);
  d.said = file ? fmt::format("from {} file: {}", field, d.origin) : fmt::format("specified in {}.", d.origin);
  d.state = stateOf(caffe::TRAIN, d.param, s.has_train_state() ? &s.train_state() : nullptr);
  return d;
}

std::vector<NetDescription> testDescriptions(const caffe::SolverParameter& s, const std::string& folder,
                                             const std::string& inlined) {
  const auto named = [&](const char* field) { return inlined.empty() ? field : inlined; };
  const bool generic = s.has_net_param() || s.has_net();
  const int explicitNets = s.test_net_param_size() + s.test_net_size();
  const int wanted = s.test_iter_size();
  if (generic ? wanted < explicitNets : wanted != explicitNets)
    invalid("test_iter is given {} times for {} test nets; give one test_iter per test net", wanted, explicitNets);
  if (s.test_state_size() && s.test_state_size() != wanted)
    invalid("test_state is given {} times; give none or one per test net ({})", s.test_state_size(), wanted);
  if (wanted && s.test_interval() < 0) invalid("test_interval must not be negative, not {}", s.test_interval());
  std::vector<NetDescription> all;
  for (const auto& p : s.test_net_param()) all.push_back({p, {}, named("test_net_param"), "test_net_param"});
  for (const auto& path : s.test_net())
    all.push_back({fromFile(path, folder), {}, path, fmt::format("test_net file: {}", path)});
  while (static_cast<int>(all.size()) < wanted) {
    const std::string file = withoutInlined(s, inlined).net();
    all.push_back({s.has_net_param() ? s.net_param() : fromFile(s.net(), folder),
                   {},
                   file.empty() ? "net_param" : file,
                   file.empty() ? "net_param" : fmt::format("net file: {}", file)});
  }
  for (size_t i = 0; i < all.size(); ++i)
    all[i].state =
        stateOf(caffe::TEST, all[i].param, s.test_state_size() ? &s.test_state(static_cast<int>(i)) : nullptr);
  return all;
}

NetDescription scoringDescription(const caffe::SolverParameter& s, const std::string& folder,
                                  const std::string& inlined) {
  const auto tests = testDescriptions(s, folder, inlined);
  if (!tests.empty()) return tests[0];
  NetDescription d = trainDescription(s, folder, inlined);
  d.state.set_phase(caffe::TEST);
  return d;
}

caffe::SolverParameter inlineNets(const caffe::SolverParameter& solver, const std::string& folder) {
  caffe::SolverParameter s = solver;
  if (s.has_net()) *s.mutable_net_param() = fromFile(s.net(), folder), s.clear_net();
  if (s.has_train_net()) *s.mutable_train_net_param() = fromFile(s.train_net(), folder), s.clear_train_net();
  for (const auto& path : solver.test_net()) *s.add_test_net_param() = fromFile(path, folder);
  s.clear_test_net();
  return s;
}

std::string netOrigin(const caffe::SolverParameter& written) {
  return written.has_net() ? written.net() : written.train_net();
}

caffe::SolverParameter withoutInlined(const caffe::SolverParameter& solver, const std::string& inlined) {
  caffe::SolverParameter s = solver;
  if (inlined.empty()) return s;
  if (s.has_net_param()) s.set_net(inlined), s.clear_net_param();
  if (s.has_train_net_param()) s.set_train_net(inlined), s.clear_train_net_param();
  return s;
}

caffe::SolverParameter prepareSolver(caffe::SolverParameter solver, const std::string& path, int64_t seedIfUnset) {
  return inside([&] { return "in solver " + path; },
                [&] {
                  checkSolver(solver);
                  const std::string folder = parentDirectory(path);
                  trainDescription(solver, folder);
                  testDescriptions(solver, folder);
                  solver = inlineNets(solver, folder);
                  if (!solver.has_snapshot_prefix() || solver.snapshot_prefix().empty()) {
                    const size_t slash = path.rfind('/'), dot = path.rfind('.');
                    solver.set_snapshot_prefix(dot != std::string::npos && (slash == std::string::npos || dot > slash)
                                                   ? path.substr(0, dot)
                                                   : path);
                  } else if (isDirectory(solver.snapshot_prefix())) {
                    std::string stem = path.substr(path.rfind('/') == std::string::npos ? 0 : path.rfind('/') + 1);
                    solver.set_snapshot_prefix(joinPath(solver.snapshot_prefix(), stem.substr(0, stem.rfind('.'))));
                  }
                  if (solver.random_seed() < 0 && seedIfUnset >= 0) solver.set_random_seed(seedIfUnset);
                  if (solver.random_seed() < 0) {
                    uint32_t seed = 0;
                    std::memcpy(&seed, randomBytes(4).data(), 4);
                    solver.set_random_seed(seed & 0x7fffffff);
                    LOG_INFO("random_seed is not set: {} was drawn; write it into the solver to repeat this run",
                             solver.random_seed());
                  }
                  return solver;
                });
}

void warnOfUnusual(const caffe::SolverParameter& s) {
  if (!(s.momentum() >= 0 && s.momentum() < 1))
    LOG_WARNING("momentum {} lies outside 0 <= momentum < 1: steps are never forgotten, or turn back", s.momentum());
  for (int i = 1; i < s.stepvalue_size(); ++i)
    if (s.stepvalue(i) <= s.stepvalue(i - 1))
      LOG_WARNING("stepvalue {} follows {}; of steps that are due together each iteration takes one", s.stepvalue(i),
                  s.stepvalue(i - 1));
  if (s.test_interval() == 0 && std::any_of(s.test_iter().begin(), s.test_iter().end(), [](int n) { return n > 0; }))
    LOG_WARNING("test_iter is given and test_interval is not: the net is never tested");
}

void checkSolver(const caffe::SolverParameter& s) {
  if (s.has_solver_mode() && s.solver_mode() == caffe::SolverParameter::GPU)
    invalid(
        "Cannot use GPU in CPU-only Caffe: check mode. Set `solver_mode: CPU` in the solver prototxt; this executable "
        "computes on the CPU");
  const auto* fields = s.GetDescriptor();
  for (int i = 0; i < fields->field_count(); ++i) {
    const auto* field = fields->field(i);
    if (field->cpp_type() == field->CPPTYPE_FLOAT && !field->is_repeated() &&
        std::isnan(s.GetReflection()->GetFloat(s, field)))
      invalid("{} should be a number, not nan", field->name());
  }
  checkRule(s);
  if (s.iter_size() < 1) invalid("iter_size must be at least 1, not {}", s.iter_size());
  if (s.average_loss() < 1) invalid("average_loss must be at least 1, not {}", s.average_loss());
  if (s.max_iter() < 0) invalid("max_iter must not be negative, not {}", s.max_iter());
  if (s.regularization_type() != "L2" && s.regularization_type() != "L1")
    invalid("Unknown regularization type: {}; set regularization_type to \"L1\" or \"L2\"", s.regularization_type());
  for (int n : s.test_iter())
    if (n < 0) invalid("test_iter must not be negative, not {}", n);
  checkPolicy(s);
}

}  // namespace crema::solver
