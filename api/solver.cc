// The functions of crema.h on solvers.
#include "solver/solver.h"

#include "api/handles.h"
#include "base/file.h"
#include "base/log.h"
#include "base/text.h"
#include "model/upgrade.h"
#include "solver/descriptions.h"
#include "train/trainer.h"

namespace crema::api {
namespace {

struct SolverBox {
  std::shared_ptr<Compute> compute;
  std::shared_ptr<InputArrays> trainArrays;
  std::vector<std::shared_ptr<InputArrays>> testArrays;
  std::unique_ptr<solver::Solver> solver;  // order of members: the solver is destroyed before what its nets use
  int (*start)(void* user) = nullptr;
  int (*gradientsReady)(void* user) = nullptr;
  void* user = nullptr;  // passed to both callbacks
};

caffe::SolverParameter read(const std::string& file, const char* type) {
  caffe::SolverParameter p = model::readSolver(file);
  if (type) p.set_type(type);
  if (p.has_solver_mode() && p.solver_mode() == caffe::SolverParameter::GPU) {
    LOG_WARNING("{}: solver_mode GPU is passed over; everything here computes on the CPU", file);
    p.set_solver_mode(caffe::SolverParameter::CPU);
  }
  return solver::prepareSolver(std::move(p), file, givenSeed());
}

// All nets of a solver share one DataOptions, so all of their MemoryData layers read databases, or none.
bool memorySources(const caffe::SolverParameter& p) {
  bool any = readsMemorySource(p.net_param()) || readsMemorySource(p.train_net_param());
  for (const auto& net : p.test_net_param()) any = any || readsMemorySource(net);
  return any;
}

void start(SolverBox& box, const std::string& file, const caffe::SolverParameter& p) {
  solver::SolverOptions o;
  o.kernels = &box.compute->kernels;
  o.registry = &hostRegistry();
  o.seed = static_cast<uint64_t>(p.random_seed());
  o.folder = parentDirectory(file);
  o.log = logsInfo();
  o.hostLooks = true;
  o.origin = solver::netOrigin(model::readSolver(file));
  box.trainArrays = std::make_shared<InputArrays>();
  const auto shown = std::make_shared<std::vector<const Blob*>>();
  if (!memorySources(p)) {
    o.trainData.source = layers::FromBlobs{box.trainArrays->view.get()};
    o.testData.source = layers::FromBlobs{shown.get()};
  }
  if (p.snapshot() > 0 || p.snapshot_after_train()) checkWritable(p.snapshot_prefix());
  box.solver = std::make_unique<solver::Solver>(p, o);
  advanceBeforeForward(box.solver->net(), box.trainArrays.get(), {});
  for (size_t i = 0; i < box.solver->testNets(); ++i) {
    box.testArrays.push_back(std::make_shared<InputArrays>());
    box.testArrays.back()->view = shown;
    advanceBeforeForward(box.solver->testNet(i), box.testArrays.back().get(), {});
  }
  const std::string weights = joined(p.weights(), ",");
  if (!weights.empty()) box.solver->copyTrainedFrom(weights);
}

void run(SolverBox& box, const std::function<void(train::Trainer&)>& body) {
  const auto hold = box.compute->hold();
  train::TrainHooks hooks;
  // Each iteration begins with a pause, though nobody may ask for a callback.
  hooks.start = [&] { box.compute->askPaused([&] { return box.start ? box.start(box.user) : 1; }); };
  hooks.gradientsReady = [&] {
    if (box.gradientsReady) box.compute->askPaused([&] { return box.gradientsReady(box.user); });
  };
  train::TrainOptions o;
  o.snapshotPrefix = box.solver->param().snapshot_prefix();
  train::Trainer trainer(*box.solver, nullptr, o, hooks);
  body(trainer);
}

}  // namespace
}  // namespace crema::api

struct crema_solver {
  std::shared_ptr<crema::api::SolverBox> box;
};

using namespace crema;
using namespace crema::api;

int crema_solver_create(const char* prototxt, const char* type, crema_solver** made) {
  return guard([&] {
    auto box = std::make_shared<SolverBox>();
    box->compute = std::make_shared<Compute>();
    start(*box, prototxt, read(prototxt, type));
    *made = new crema_solver{std::move(box)};
  });
}

void crema_solver_free(crema_solver* solver) {
  if (solver && solver->box->compute->inherited()) return;  // not freed: its threads are the parent's
  delete solver;
}
const char* crema_solver_type(const crema_solver* solver) { return solver->box->solver->param().type().c_str(); }
int crema_solver_test_nets(const crema_solver* solver) { return static_cast<int>(solver->box->solver->testNets()); }

int crema_solver_net(const crema_solver* solver, int test_net, crema_net** made) {
  return guard([&] {
    const auto& box = solver->box;
    if (test_net < -1 || test_net >= crema_solver_test_nets(solver))
      invalid("there is no test net {}: the solver has {}", test_net, box->solver->testNets());
    net::Net& net = test_net < 0 ? box->solver->net() : box->solver->testNet(static_cast<size_t>(test_net));
    auto arrays = test_net < 0 ? box->trainArrays : box->testArrays[static_cast<size_t>(test_net)];
    auto made_box = std::make_unique<NetBox>(box->compute, std::shared_ptr<net::Net>(box, &net), std::move(arrays));
    made_box->ownsWeights = test_net < 0;
    *made = newNet(std::move(made_box));
  });
}

int crema_solver_step(crema_solver* solver, int iterations) {
  return guard([&] { run(*solver->box, [&](train::Trainer& t) { t.iterate(iterations); }); });
}

int crema_solver_solve(crema_solver* solver, const char* resume) {
  return guard([&] {
    run(*solver->box, [&](train::Trainer& t) {
      if (resume) solver->box->solver->restore(resume, "");
      t.run();
    });
  });
}

int crema_solver_restore(crema_solver* solver, const char* state) {
  return guard([&] {
    const auto hold = solver->box->compute->hold();
    solver->box->solver->restore(state, "");
  });
}

int crema_solver_snapshot(crema_solver* solver) {
  return guard([&] {
    const auto hold = solver->box->compute->hold();
    solver->box->solver->snapshot(solver->box->solver->param().snapshot_prefix());
  });
}

int crema_solver_apply_update(crema_solver* solver) {
  return guard([&] {
    const auto hold = solver->box->compute->hold();
    solver::Solver& s = *solver->box->solver;
    s.applyUpdate(s.net().flatDiff().mutableDiff<float>(), 1);
  });
}

int crema_solver_get(const crema_solver* solver, crema_setting setting, double* value) {
  return guard([&] {
    const auto hold = setting == CREMA_ITER ? Compute::Hold() : solver->box->compute->holdToRead();
    const solver::Solver& s = *solver->box->solver;
    switch (setting) {
      case CREMA_ITER:
        *value = s.iteration();
        return;
      case CREMA_LR:
        *value = s.rate();
        return;
      case CREMA_BASE_LR:
        *value = static_cast<double>(s.param().base_lr());
        return;
      case CREMA_MAX_ITER:
        *value = s.param().max_iter();
        return;
      case CREMA_DISPLAY:
        *value = s.param().display();
        return;
    }
    invalid("a solver has no setting {}", static_cast<int>(setting));
  });
}

int crema_solver_set(crema_solver* solver, crema_setting setting, double value) {
  return guard([&] {
    const auto hold = solver->box->compute->hold();
    caffe::SolverParameter& p = solver->box->solver->settings();
    if (setting == CREMA_BASE_LR)
      p.set_base_lr(static_cast<float>(value));
    else if (setting == CREMA_MAX_ITER || setting == CREMA_DISPLAY) {
      if (!(value >= 0 && value <= 2147483647)) invalid("max_iter and display must be 0 to 2147483647, not {}", value);
      setting == CREMA_MAX_ITER ? p.set_max_iter(static_cast<int>(value)) : p.set_display(static_cast<int>(value));
    } else {
      invalid("only base_lr, max_iter and display can be set");
    }
  });
}

int crema_solver_set_callbacks(crema_solver* solver, int (*start)(void*), int (*gradients_ready)(void*), void* user) {
  return guard([&] {
    const auto hold = solver->box->compute->hold();
    solver->box->start = start, solver->box->gradientsReady = gradients_ready, solver->box->user = user;
  });
}
