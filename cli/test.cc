// crema test and crema time: Caffe's commands on a net prototxt.
#include <cstdio>

#include "base/deadline.h"
#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "cli/described_net.h"
#include "cli/json.h"
#include "kernels/context.h"
#include "net/net.h"
#include "solver/outputs.h"

namespace crema::cli {
namespace {

struct TestFlags {
  NetFlags net;
  std::string weights, isa, gpu;
  int iterations = 50, threads = 0;
  bool json = false;
};

void checkMode(const TestFlags& f) {
  refuseGpu(f.gpu);
  if (f.iterations < 1) invalid("-iterations must be at least 1, not {}", f.iterations);
  LOG_INFO("Use CPU.");
}

std::unique_ptr<net::Net> build(const TestFlags& f, kernels::Context& kernels) {
  net::NetOptions o;
  o.kernels = &kernels;
  o.log = true;
  o.data.folder = parentDirectory(f.net.model);
  return readFlaggedNet(f.net, o);
}

void printJson(const net::Net& net, const TestFlags& f, const solver::OutputSums& scores) {
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

int test(const TestFlags& f) {
  checkMode(f);
  kernels::Context kernels(kernels::chooseIsa(f.isa), f.threads);
  auto net = build(f, kernels);
  net::copyTrainedFiles(*net, f.weights);
  net::warnOfUntrained(*net, f.weights);
  LOG_INFO("Running for {} iterations.", f.iterations);
  solver::OutputSums scores;
  for (int i = 0; i < f.iterations; ++i) {
    net->setStep(i, 0);
    scores.add(*net, net->forward());
    for (const auto& name : net->outputs())
      for (int k = 0; k < net->blob(name).count(); ++k)
        LOG_INFO("Batch {}, {} = {:.6g}", i, name, net->blob(name).dataAt(k));
  }
  LOG_INFO("Loss: {:.6g}", scores.loss());
  solver::logOutputs(*net, scores.means(), "");
  if (f.json) printJson(*net, f, scores);
  return 0;
}

struct Clock {
  double forward = 0, backward = 0;  // milliseconds
};

double milliseconds(const std::function<void()>& work) {
  const double from = monotonicSeconds();
  work();
  return (monotonicSeconds() - from) * 1e3;
}

void logTimes(const net::Net& net, const std::vector<Clock>& clocks, int iterations) {
  double forward = 0, backward = 0;
  LOG_INFO("Average time per layer: ");
  for (size_t i = 0; i < clocks.size(); ++i) {
    const auto& name = net.layers()[i]->name();
    LOG_INFO("{:>10}\tforward: {:.6g} ms.", name, clocks[i].forward / iterations);
    LOG_INFO("{:>10}\tbackward: {:.6g} ms.", name, clocks[i].backward / iterations);
    forward += clocks[i].forward, backward += clocks[i].backward;
  }
  LOG_INFO("Average Forward pass: {:.6g} ms.", forward / iterations);
  LOG_INFO("Average Backward pass: {:.6g} ms.", backward / iterations);
  LOG_INFO("Average Forward-Backward: {:.6g} ms.", (forward + backward) / iterations);
  LOG_INFO("Total Time: {:.6g} ms.", forward + backward);
  LOG_INFO("*** Benchmark ends ***");
}

void printJson(const net::Net& net, const std::vector<Clock>& clocks, int iterations) {
  Json json;
  json.text("net", net.name()), json.integer("iterations", iterations);
  double forward = 0, backward = 0;
  for (const Clock& c : clocks) forward += c.forward, backward += c.backward;
  json.number("forward_ms", forward / iterations), json.number("backward_ms", backward / iterations);
  json.number("forward_backward_ms", (forward + backward) / iterations), json.number("total_ms", forward + backward);
  json.array("layers");
  for (size_t i = 0; i < clocks.size(); ++i) {
    json.object(), json.text("name", net.layers()[i]->name()), json.text("type", net.layers()[i]->type());
    json.number("forward_ms", clocks[i].forward / iterations);
    json.number("backward_ms", clocks[i].backward / iterations), json.end();
  }
  json.print();
}

// One forward and backward to warm up, then the time of every layer, forward and backward, whether or not a loss needs
// it: a deploy net's layers compute the gradients of their parameters, as in Caffe. What has no gradient computes
// nothing.
int time(const TestFlags& f) {
  checkMode(f);
  kernels::Context kernels(kernels::chooseIsa(f.isa), f.threads);
  auto net = build(f, kernels);
  if (!f.weights.empty()) net::copyTrainedFiles(*net, f.weights);
  LOG_INFO("Performing Forward");
  LOG_INFO("Initial loss: {:.6g}", net->forward());
  LOG_INFO("Performing Backward");
  for (int i = static_cast<int>(net->layers().size()); i-- > 0;) net->backwardLayer(i);
  LOG_INFO("*** Benchmark begins ***");
  LOG_INFO("Testing for {} iterations.", f.iterations);
  const int layers = static_cast<int>(net->layers().size());
  std::vector<Clock> clocks(static_cast<size_t>(layers));
  for (int j = 0; j < f.iterations; ++j) {
    double here = 0, back = 0;
    net->setStep(j + 1, 0);
    for (int i = 0; i < layers; ++i) {
      const double t = milliseconds([&] { net->forwardLayer(i); });
      clocks[static_cast<size_t>(i)].forward += t, here += t;
    }
    for (int i = layers - 1; i >= 0; --i) {
      const double t = milliseconds([&] { net->backwardLayer(i); });
      clocks[static_cast<size_t>(i)].backward += t, back += t;
    }
    LOG_INFO("Iteration: {} forward-backward time: {:.6g} ms.", j + 1, here + back);
  }
  logTimes(*net, clocks, f.iterations);
  if (f.json) printJson(*net, clocks, f.iterations);
  return 0;
}

void common(CLI::App& app, TestFlags& f, bool phase) {
  addNetFlags(app, f.net, phase);
  app.add_option("--iterations", f.iterations, "batches to run")->capture_default_str();
  app.add_option("--threads", f.threads, "threads; 0: all cores")->capture_default_str();
  app.add_option("--isa", f.isa, kernels::isaNames());
  app.add_option("--gpu", f.gpu, "refused: this executable computes on the CPU");
}

}  // namespace

void addTest(CLI::App& program, Run& chosen) {
  addCommand(
      program, "test", "score a model",
      [](CLI::App& app) -> Run {
        auto f = std::make_shared<TestFlags>();
        common(app, *f, false);
        app.add_option("--weights", f->weights, "the .caffemodel[.h5] files, separated by commas")->required();
        app.add_flag("--json", f->json, "on stdout {net, iterations, loss, outputs: [{name, loss_weight, values}]}");
        return [f] { return test(*f); };
      },
      chosen);
}

void addTime(CLI::App& program, Run& chosen) {
  addCommand(
      program, "time", "benchmark a net layer by layer",
      [](CLI::App& app) -> Run {
        auto f = std::make_shared<TestFlags>();
        f->net.phase = "TRAIN";
        common(app, *f, true);
        app.add_option("--weights", f->weights, "time it with these .caffemodel[.h5] files, separated by commas");
        app.add_flag("--json", f->json,
                     "on stdout {net, iterations, forward_ms, backward_ms, forward_backward_ms, total_ms, layers: "
                     "[{name, type, forward_ms, backward_ms}]}; means of the iterations, but for total_ms");
        return [f] {
          if (f->net.phase.empty()) f->net.phase = "TRAIN";  // Caffe's own default
          return time(*f);
        };
      },
      chosen);
}

}  // namespace crema::cli
