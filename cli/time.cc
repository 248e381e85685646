// crema time: Caffe's lines about how long each layer takes, and a table of what it reaches of what the machine can.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <type_traits>

#include "base/deadline.h"
#include "base/log.h"
#include "cli/json.h"
#include "cli/net_run.h"
#include "cli/noise.h"
#include "cli/roofline.h"
#include "cli/table.h"
#include "layers/record_layer.h"
#include "net/scoring_plan.h"
#include "net/training_plan.h"

namespace crema::cli {
namespace {

// Of one layer and one direction; the mean of the iterations.
struct Pass {
  double milliseconds = 0;
  Work work;
};

struct Times {
  std::vector<Pass> forward, backward;     // a layer each; without backward passes, none
  std::vector<int> computedBy;             // the layer that computes each: itself, or the one whose plan it is part of
  std::vector<int> forwardBy, backwardBy;  // the same of one of its passes
  Peaks peaks;
  int64_t memory = 0;  // before the peaks were measured
  std::vector<Output> outputs;
  bool forwardOnly() const { return backward.empty(); }
};

Pass sum(const std::vector<Pass>& passes) {
  Pass all;
  for (const Pass& p : passes) all.milliseconds += p.milliseconds, all.work += p.work;
  return all;
}

// Of all the time, the part of layers that read records.
double feedShare(const net::Net& net, const Times& times) {
  double feed = 0;
  const auto& readers = net.recordLayers();
  for (size_t i = 0; i < times.forward.size(); ++i)
    if (std::any_of(readers.begin(), readers.end(), [&](const auto* r) { return r == net.layers()[i].get(); }))
      feed += times.forward[i].milliseconds;
  const double all = sum(times.forward).milliseconds + sum(times.backward).milliseconds;
  return all > 0 ? feed / all : 0;
}

double milliseconds(const std::function<void()>& work) {
  const double from = monotonicSeconds();
  work();
  return (monotonicSeconds() - from) * 1e3;
}

void logTimes(const net::Net& net, const Times& times, int iterations) {
  LOG_INFO("Average time per layer: ");
  for (size_t i = 0; i < times.forward.size(); ++i) {
    const auto& name = net.layers()[i]->name();
    LOG_INFO("{:>10}\tforward: {:.6g} ms.", name, times.forward[i].milliseconds);
    if (!times.forwardOnly()) LOG_INFO("{:>10}\tbackward: {:.6g} ms.", name, times.backward[i].milliseconds);
  }
  const double forward = sum(times.forward).milliseconds, backward = sum(times.backward).milliseconds;
  LOG_INFO("Average Forward pass: {:.6g} ms.", forward);
  if (!times.forwardOnly()) {
    LOG_INFO("Average Backward pass: {:.6g} ms.", backward);
    LOG_INFO("Average Forward-Backward: {:.6g} ms.", forward + backward);
  }
  LOG_INFO("Total Time: {:.6g} ms.", (forward + backward) * iterations);
  LOG_INFO("*** Benchmark ends ***");
}

// The share of the machine that a pass reaches: 100 where it takes the least time; NaN where that is not known.
double percentOfPeak(double ms, double leastMs) { return leastMs > 0 && ms > 0 ? 100 * leastMs / ms : NAN; }

double leastOf(const std::vector<Pass>& passes, const Peaks& peaks) {
  double least = 0;
  for (const Pass& p : passes) least += 1e3 * leastSeconds(p.work, peaks);
  return least;
}

std::string cell(double value) { return value > 0 ? fmt::format("{:.{}f}", value, value < 9.995 ? 2 : 1) : ""; }

void addCells(Row& row, const Pass& p, double leastMs) {
  row.push_back(fmt::format("{:.3f}", p.milliseconds));
  row.push_back(p.milliseconds > 0 ? cell(p.work.flops / p.milliseconds / 1e6) : "");
  row.push_back(p.milliseconds > 0 ? cell(p.work.bytes / p.milliseconds / 1e6) : "");
  const double percent = percentOfPeak(p.milliseconds, leastMs);
  row.push_back(std::isnan(percent) ? "" : fmt::format("{:.0f} %", percent));
}

// Its type, and the layers that do its passes.
std::string typeAndWhere(const net::Net& net, const Times& times, size_t i) {
  const auto in = [&](int layer) { return " in " + net.layers()[static_cast<size_t>(layer)]->name(); };
  const int by = times.computedBy[i], forwardBy = times.forwardBy[i], backwardBy = times.backwardBy[i];
  std::string text = net.layers()[i]->type();
  if (by != static_cast<int>(i)) return text + in(by);
  if (forwardBy != by) text += ", forward" + in(forwardBy);
  if (backwardBy != by) text += ", backward" + in(backwardBy);
  return text;
}

// Layers that a net inserts (splits) stand there with the others, as they take time too.
void printTimes(const net::Net& net, const Times& times, int threads) {
  Row head = {"layer", "type", "forward ms", "GFLOP/s", "GB/s", "of peak"};
  if (!times.forwardOnly()) head.insert(head.end(), {"backward ms", "GFLOP/s", "GB/s", "of peak"});
  head.push_back("share");
  std::vector<Row> rows = {std::move(head)};
  const Pass forward = sum(times.forward), backward = sum(times.backward);
  const double all = forward.milliseconds + backward.milliseconds;
  const auto addRow = [&](Row row, const Pass& f, const Pass& b, double leastF, double leastB) {
    addCells(row, f, leastF);
    if (!times.forwardOnly()) addCells(row, b, leastB);
    row.push_back(all > 0 ? fmt::format("{:.1f} %", 100 * (f.milliseconds + b.milliseconds) / all) : "");
    rows.push_back(std::move(row));
  };
  for (size_t i = 0; i < times.forward.size(); ++i) {
    const Pass f = times.forward[i], b = times.forwardOnly() ? Pass{} : times.backward[i];
    Row row = {net.layers()[i]->name(), typeAndWhere(net, times, i)};
    if (times.computedBy[i] != static_cast<int>(i)) {
      rows.push_back(std::move(row));
      continue;
    }
    addRow(std::move(row), f, b, 1e3 * leastSeconds(f.work, times.peaks), 1e3 * leastSeconds(b.work, times.peaks));
  }
  addRow({"all layers", ""}, forward, backward, leastOf(times.forward, times.peaks),
         leastOf(times.backward, times.peaks));
  printTable(rows, 2);
  const double feed = 100 * feedShare(net, times);
  std::printf(
      "\nfeed %.1f %%, compute %.1f %%; `crema train` shows in its progress how much workers exchange and wait.\n",
      feed, 100 - feed);
  const bool known = !std::isnan(times.peaks.flops);
  if (known)
    std::printf(
        "\npeak of %d thread%s: %.0f GFLOP/s in the first cache, %.1f GB/s of memory. Of peak: the least time that a "
        "pass could take at these, as its arithmetic or its bytes bound it, to the time it took; above 100 %% where "
        "blobs are in a cache still, and where filters of 3 x 3 and 5 x 5 are computed with fewer products.\n",
        threads, threads == 1 ? "" : "s", times.peaks.flops / 1e9, times.peaks.bytes / 1e9);
  if (times.memory)
    std::printf("memory of this process at its peak: %.0f MiB, weights that were read included%s.\n",
                static_cast<double>(times.memory) / (1 << 20), known ? "; measuring these peaks took 192 more" : "");
}

void addPass(Json& json, const std::string& direction, const Pass& p, const Peaks& peaks) {
  json.number(direction + "_ms", p.milliseconds);
  json.number(direction + "_flops", p.work.flops), json.number(direction + "_bytes", p.work.bytes);
  json.number(direction + "_percent_of_peak", percentOfPeak(p.milliseconds, 1e3 * leastSeconds(p.work, peaks)));
}

void printJson(const net::Net& net, const Times& times, int iterations, int threads) {
  Json json;
  json.text("net", net.name()), json.integer("iterations", iterations), json.integer("threads", threads);
  const double forward = sum(times.forward).milliseconds, backward = sum(times.backward).milliseconds;
  json.number("forward_ms", forward);
  if (!times.forwardOnly())
    json.number("backward_ms", backward), json.number("forward_backward_ms", forward + backward);
  json.number("total_ms", (forward + backward) * iterations);
  const double feed = feedShare(net, times);
  json.number("feed_share", feed), json.number("compute_share", 1 - feed);
  json.integer("memory_bytes", times.memory);
  json.number("peak_flops", times.peaks.flops), json.number("peak_bytes", times.peaks.bytes);
  json.array("layers");
  for (size_t i = 0; i < times.forward.size(); ++i) {
    json.object(), json.text("name", net.layers()[i]->name()), json.text("type", net.layers()[i]->type());
    json.text("computed_by", net.layers()[static_cast<size_t>(times.computedBy[i])]->name());
    json.text("forward_computed_by", net.layers()[static_cast<size_t>(times.forwardBy[i])]->name());
    addPass(json, "forward", times.forward[i], times.peaks);
    if (!times.forwardOnly()) {
      json.text("backward_computed_by", net.layers()[static_cast<size_t>(times.backwardBy[i])]->name());
      addPass(json, "backward", times.backward[i], times.peaks);
    }
    json.end();
  }
  json.end();
  json.array("outputs");
  for (const Output& out : times.outputs) {
    json.object(), json.text("name", out.name), json.number("root_mean_square", out.rootMeanSquare);
    json.array("shape");
    for (const int dim : out.shape) json.integer("", dim);
    json.end(), json.array("first");
    for (const double value : out.first) json.number("", value);
    json.end(), json.end();
  }
  json.print();
}

// One forward and backward to warm up, then the time of every layer, forward and backward, whether or not a loss needs
// it: a deploy net's layers compute the gradients of their parameters, as in Caffe. What has no gradient computes
// nothing.
template <class Plan>
Times measure(net::Net& net, Plan& plan, int iterations) {
  constexpr bool kForwardOnly = std::is_same_v<Plan, net::ScoringPlan>;
  const int layers = static_cast<int>(net.layers().size()), downTo = kForwardOnly ? layers : 0;
  const auto backward = [&]([[maybe_unused]] int i) {
    if constexpr (!kForwardOnly) plan.backwardLayer(i);
  };
  NoisyInputs inputs(net);
  LOG_INFO("Performing Forward");
  LOG_INFO("Initial loss: {:.6g}", inputs.fill([&] { return plan.forward(); }));
  if (!kForwardOnly) LOG_INFO("Performing Backward");
  for (int i = layers; i-- > downTo;) backward(i);
  LOG_INFO("*** Benchmark begins ***");
  LOG_INFO("Testing for {} iterations.", iterations);
  Times times;
  times.forward.resize(static_cast<size_t>(layers)), times.backward.resize(static_cast<size_t>(layers - downTo));
  for (int j = 0; j < iterations; ++j) {
    double here = 0;
    net.setStep(j + 1, 0);
    inputs.refill();
    const auto add = [&](Pass& to, const std::function<void()>& pass) {
      const double t = milliseconds(pass);
      to.milliseconds += t / iterations, here += t;
    };
    for (int i = 0; i < layers; ++i) add(times.forward[static_cast<size_t>(i)], [&] { plan.forwardLayer(i); });
    if constexpr (!kForwardOnly) plan.clearParamDiffs();
    for (int i = layers; i-- > downTo;) add(times.backward[static_cast<size_t>(i)], [&] { backward(i); });
    LOG_INFO("Iteration: {} forward{} time: {:.6g} ms.", j + 1, kForwardOnly ? "" : "-backward", here);
  }
  times.outputs = outputsOf(net);
  for (int i = 0; i < layers; ++i) {
    times.computedBy.push_back(plan.computedBy(i));
    times.forwardBy.push_back(plan.forwardBy(i)), times.backwardBy.push_back(plan.backwardBy(i));
    if (plan.computedBy(i) != i) continue;
    if (plan.forwardBy(i) == i) times.forward[static_cast<size_t>(i)].work = forwardWork(net, i);
    if (!kForwardOnly && plan.backwardBy(i) == i) times.backward[static_cast<size_t>(i)].work = backwardWork(net, i);
  }
  return times;
}

Times measureScoring(net::Net& net, kernels::Context& kernels, int iterations) {
  const kernels::FrozenWeights frozen(kernels);
  net::ScoringPlan plan(net);
  return measure(net, plan, iterations);
}

Times measureTraining(net::Net& net, int iterations) {
  net::TrainingPlan plan(net, {.which = net::TrainingPlan::GoingBack::All});
  return measure(net, plan, iterations);
}

int time(const RunFlags& f) {
  checkRun(f);
  kernels::Context kernels(kernels::chooseIsa(f.isa), f.threads);
  auto net = netToRun(f, kernels, !f.forwardOnly);
  if (!f.weights.empty()) net::copyTrainedFiles(*net, f.weights);
  Times times = f.forwardOnly ? measureScoring(*net, kernels, f.iterations) : measureTraining(*net, f.iterations);
  logTimes(*net, times, f.iterations);
  times.memory = mostMemory();
  times.peaks = measuredPeaks(kernels);
  if (f.json)
    printJson(*net, times, f.iterations, kernels.pool().size());
  else
    printTimes(*net, times, kernels.pool().size());
  return 0;
}

}  // namespace

void addTime(CLI::App& program, Run& chosen) {
  addCommand(
      program, "time", "benchmark a net layer by layer, with noise for its inputs",
      [](CLI::App& app) -> Run {
        auto f = std::make_shared<RunFlags>();
        f->net.phase = "TRAIN";
        addRunFlags(app, *f, true);
        app.add_option("--weights", f->weights, "time it with these .caffemodel[.h5] files, separated by commas");
        app.add_flag("--forward_only", f->forwardOnly,
                     "time forward passes alone, as scoring computes them: prepared weights are kept, and a layer that "
                     "is a step "
                     "of a convolution takes its time there");
        app.add_flag(
            "--json", f->json,
            "instead of the table, on stdout {net, iterations, threads, forward_ms, backward_ms, "
            "forward_backward_ms, total_ms, feed_share and compute_share (of 1), memory_bytes (the process's "
            "at its peak, before this machine's are measured with 192 MiB more), peak_flops, peak_bytes "
            "(a second), layers: [{name, type, and of "
            "forward and backward: _ms, _flops, _bytes, _percent_of_peak; computed_by, forward_computed_by, "
            "backward_computed_by}], outputs of the last pass: [{name, root_mean_square, shape, first (16 numbers)}]}; "
            "means of the iterations, but for total_ms");
        return [f] {
          if (f->net.phase.empty()) f->net.phase = "TRAIN";  // Caffe's own default
          return time(*f);
        };
      },
      chosen);
}

}  // namespace crema::cli
