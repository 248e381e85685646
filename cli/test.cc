// crema test: Caffe's command on a net prototxt.
#include "base/log.h"
#include "cli/json.h"
#include "cli/net_run.h"
#include "net/scoring_plan.h"
#include "solver/outputs.h"

namespace crema::cli {
namespace {

void printJson(const net::Net& net, const RunFlags& f, const solver::OutputSums& scores) {
  Json json;
  json.text("net", net.name()), json.integer("iterations", f.iterations), json.number("loss", scores.loss());
  json.array("outputs");
  const std::vector<double> means = scores.means();
  auto mean = means.begin();
  for (const auto& name : net.outputs()) {
    json.object(), json.text("name", name), json.number("loss_weight", net.outputLossWeight(name));
    json.array("values");
    for (int k = 0; k < net.blob(name).count(); ++k) json.number("", *mean++);
    json.end(), json.end();
  }
  json.print();
}

int test(const RunFlags& f) {
  checkRun(f);
  kernels::Context kernels(kernels::chooseIsa(f.isa), f.threads);
  auto net = netToRun(f, kernels, false);
  net::copyTrainedFiles(*net, f.weights);
  net::warnOfUntrained(*net, f.weights);
  LOG_INFO("Running for {} iterations.", f.iterations);
  const kernels::FrozenWeights frozen(kernels);
  net::ScoringPlan plan(*net);
  solver::OutputSums scores;
  for (int i = 0; i < f.iterations; ++i) {
    net->setStep(i, 0);
    scores.add(*net, plan.forward());
    for (const auto& name : net->outputs())
      for (int k = 0; k < net->blob(name).count(); ++k)
        LOG_INFO("Batch {}, {} = {:.6g}", i, name, net->blob(name).dataAt(k));
  }
  LOG_INFO("Loss: {:.6g}", scores.loss());
  solver::logOutputs(*net, scores.means(), "");
  if (f.json) printJson(*net, f, scores);
  return 0;
}

}  // namespace

void addTest(CLI::App& program, Run& chosen) {
  addCommand(
      program, "test", "score a model",
      [](CLI::App& app) -> Run {
        auto f = std::make_shared<RunFlags>();
        addRunFlags(app, *f, false);
        app.add_option("--weights", f->weights, "the .caffemodel[.h5] files, separated by commas")->required();
        app.add_flag("--json", f->json, "on stdout {net, iterations, loss, outputs: [{name, loss_weight, values}]}");
        return [f] { return test(*f); };
      },
      chosen);
}

}  // namespace crema::cli
