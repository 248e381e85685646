// Solvers as files: solver_type becomes type, and nets inside are brought to the newest form.
#include "base/error.h"
#include "base/text.h"
#include "model/proto_io.h"
#include "model/upgrade.h"

namespace crema::model {
namespace {

// solver_type is the older form of type, and complete: newer types have no number in it. The compiler warns of one left
// out.
const char* typeOf(caffe::SolverParameter::SolverType old) {
  switch (old) {
    case caffe::SolverParameter::SGD:
      return "SGD";
    case caffe::SolverParameter::NESTEROV:
      return "Nesterov";
    case caffe::SolverParameter::ADAGRAD:
      return "AdaGrad";
    case caffe::SolverParameter::RMSPROP:
      return "RMSProp";
    case caffe::SolverParameter::ADADELTA:
      return "AdaDelta";
    case caffe::SolverParameter::ADAM:
      return "Adam";
  }
  internal("solver_type {} has no name", static_cast<int>(old));
}

std::string netsOf(const caffe::SolverParameter& s) {
  std::vector<std::string> names;
  for (const std::string& name : {s.net(), s.train_net()})
    if (!name.empty()) names.push_back(name);
  names.insert(names.end(), s.test_net().begin(), s.test_net().end());
  return alternatives(names);
}

}  // namespace

void refuseSolver(const std::string& path) {
  caffe::SolverParameter solver;
  try {
    solver = readText<caffe::SolverParameter>(path);
  } catch (const Error&) {
    return;
  }
  const std::string names = netsOf(solver);
  invalid("{} is a solver, and a net is needed; {}", path,
          names.empty() ? "give the file of its net" : "give the net that it names: " + names);
}

void upgradeSolver(caffe::SolverParameter* solver, const std::string& name) {
  if (!solver->has_solver_type()) return;
  if (solver->has_type()) invalid("{} gives both solver_type and type; keep type", name);
  solver->set_type(typeOf(solver->solver_type()));
  solver->clear_solver_type();
}

caffe::SolverParameter readSolver(const std::string& path) {
  caffe::SolverParameter solver;
  try {
    solver = readText<caffe::SolverParameter>(path);
  } catch (const Error& e) {
    caffe::NetParameter net;
    try {
      net = readText<caffe::NetParameter>(path);
    } catch (const Error&) {
      throw e;
    }
    invalid("{} is a net, and a solver is needed; name the file whose `net` names this one", path);
  }
  if (solver.ByteSizeLong() == 0)
    invalid("{} says nothing; a solver names its net, base_lr, lr_policy and max_iter at least", path);
  upgradeSolver(&solver, path);
  const auto nested = [&](caffe::NetParameter* net) { upgradeNet(net, path); };
  if (solver.has_net_param()) nested(solver.mutable_net_param());
  if (solver.has_train_net_param()) nested(solver.mutable_train_net_param());
  for (auto& net : *solver.mutable_test_net_param()) nested(&net);
  return solver;
}

}  // namespace crema::model
