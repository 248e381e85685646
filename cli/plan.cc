// crema plan: checks a solver and its nets before anything starts, for people and for host programs.
#include "host/plan.h"

#include <unistd.h>

#include <cstdio>

#include "base/log.h"
#include "cli/command.h"
#include "host/job_io.h"

namespace crema::cli {
namespace {

struct PlanFlags : host::PlanRequest {
  bool wire = false;
};

int plan(const PlanFlags& f) {
  setLogLevel(LogLevel::kWarning);
  const wire::Plan p = host::makePlan(f);
  if (f.wire) {
    host::writeDelimited(STDOUT_FILENO, p);
  } else {
    std::printf("net %s: %lld parameters, about %lld MiB per worker\n", p.net_name().c_str(),
                static_cast<long long>(p.parameters()), static_cast<long long>(p.memory_bytes() >> 20));
    if (p.has_train())
      std::printf("train: layer %s (%s), source %s, batch %d\n", p.train().layer().c_str(), p.train().type().c_str(),
                  p.train().source().c_str(), p.train().batch_size());
    if (p.has_test())
      std::printf("test:  layer %s (%s), source %s, batch %d\n", p.test().layer().c_str(), p.test().type().c_str(),
                  p.test().source().c_str(), p.test().batch_size());
    for (const auto& o : p.outputs()) std::printf("test output: %s\n", o.c_str());
  }
  return 0;
}

}  // namespace

void addPlan(CLI::App& program, Run& chosen) {
  addCommand(
      program, "plan", "check a solver and its nets before anything starts",
      [](CLI::App& app) -> Run {
        auto f = std::make_shared<PlanFlags>();
        app.add_option("--solver", f->solver, "the solver prototxt")->required();
        app.add_option("--ranks", f->ranks, "logical ranks");
        app.add_option("--random_seed", f->seed, "the seed when the solver sets none; negative: one is drawn");
        app.add_option("--features", f->features, "blobs that will be extracted, separated by commas");
        app.add_option("--label", f->label, "one more blob");
        app.add_option("--weights", f->weights, "the model that will be scored with; it must fit the TEST net");
        app.add_option("--weights_name", f->weightsName, "what messages call it");
        app.add_option("--rows", f->rows, "rows that the host sends to one worker, for the estimate of its memory")
            ->check(CLI::NonNegativeNumber);
        app.add_flag("--train", f->train, "a TRAIN data layer is needed");
        app.add_flag("--test", f->test, "a TEST data layer is needed");
        app.add_flag("--wire", f->wire, "write a delimited Plan (proto/wire.proto) to stdout");
        return [f] { return plan(*f); };
      },
      chosen);
}

}  // namespace crema::cli
