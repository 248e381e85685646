// crema summary: a net as a table. Multiply-adds are those with weights (convolutions, inner products, recurrent
// layers) of one forward pass of a whole batch. Memory: float32 values of blobs. Training by one rank: values and gradients as its plan
// places them, and weights with gradient and history; not what convolutions pack (up to 0.4 times as much), nor what is read ahead.
#include <cstdio>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "cli/described_net.h"
#include "cli/json.h"
#include "cli/table.h"
#include "net/training_plan.h"

namespace crema::cli {
namespace {

std::string mebibytes(int64_t values) { return fmt::format("{:.1f} MiB", static_cast<double>(values) * 4 / 1048576); }

struct LayerSummary {
  const layers::Layer* layer;
  std::string type;
  std::vector<std::string> bottoms, tops;
  std::vector<Shape> shapes;  // of the tops
  int64_t parameters = 0, adds = 0;
};

struct Summary {
  std::vector<LayerSummary> layers;
  int64_t blobs = 0, adds = 0, parameters = 0;
  int64_t training = 0;  // 0: not in phase TRAIN, or no loss needs a gradient
};

// Numbers that a step of SGD with momentum has in memory. The net is none to score with afterwards.
int64_t trainingNumbers(net::Net& net, const Summary& s) {
  const auto owners = net::memoryOwners(net);
  const net::TrainingPlan plan(net, {.mayDefer = true});
  if (!plan.shared()) return 3 * s.parameters + 2 * s.blobs;
  int64_t numbers = 3 * s.parameters + plan.shared();
  for (const auto& left : plan.deferrable()) numbers -= left.to - left.from;
  std::set<const Blob*> counted;
  for (const net::Need& need : plan.sharing())
    if (!need.ofGradient) counted.insert(need.blob);
  for (const auto& [_, owner] : owners)
    if (counted.insert(owner).second) numbers += owner->count();
  for (int i = 0; i < static_cast<int>(net.layers().size()); ++i)  // which keeps its bottom
    if (net.layers()[static_cast<size_t>(i)]->type() == "BatchNorm" && net.bottoms(i)[0] == net.tops(i)[0])
      numbers += net.tops(i)[0]->count();
  return numbers;
}

Summary summarise(DescribedNet& described) {
  net::Net& net = described.net();
  Summary s;
  for (const auto& p : net.learnables()) s.parameters += p.blob->count();
  for (int i = 0; i < static_cast<int>(net.layers().size()); ++i) {
    if (described.isCopy(i)) continue;
    const layers::Layer& layer = *net.layers()[static_cast<size_t>(i)];
    LayerSummary row{&layer, described.typeOf(i), described.bottoms(i), described.tops(i), {}};
    for (const auto& p : layer.params()) row.parameters += p->count();
    row.adds = layer.multiplyAdds(net.bottoms(i), net.tops(i));
    s.adds += row.adds;
    for (size_t t = 0; t < row.tops.size(); ++t) {
      const bool inPlace = t < net.bottoms(i).size() && net.tops(i)[t] == net.bottoms(i)[t];
      if (!inPlace) s.blobs += net.tops(i)[t]->count();
      row.shapes.push_back(net.tops(i)[t]->shape());
    }
    s.layers.push_back(std::move(row));
  }
  bool learns = false;
  for (int i = 0; i < static_cast<int>(net.layers().size()); ++i) learns |= net.needsBackward(i);
  if (learns && net.phase() == caffe::TRAIN) s.training = trainingNumbers(net, s);
  return s;
}

void printText(const net::Net& net, const Summary& s) {
  std::vector<Row> rows = {{"layer", "type", "bottoms", "tops", "parameters", "multiply-adds"}};
  for (const LayerSummary& l : s.layers) {
    std::vector<std::string> tops = l.tops;
    for (size_t t = 0; t < tops.size(); ++t) tops[t] += " " + (l.shapes[t].axes() ? l.shapes[t].brief() : "scalar");
    rows.push_back({l.layer->name(), l.type, joined(l.bottoms), joined(tops), l.parameters ? grouped(l.parameters) : "",
                    l.adds ? grouped(l.adds) : ""});
  }
  printTable(rows, 4);
  std::printf("\nnet '%s', phase %s: %s parameters, %s multiply-adds forward\n", net.name().c_str(),
              caffe::Phase_Name(net.phase()).c_str(), grouped(s.parameters).c_str(), grouped(s.adds).c_str());
  std::printf("memory: parameters %s, blobs %s%s\n", mebibytes(s.parameters).c_str(), mebibytes(s.blobs).c_str(),
              s.training ? ("; training by SGD with momentum at least " + mebibytes(s.training)).c_str() : "");
}

void printJson(const net::Net& net, const Summary& s) {
  Json json;
  json.text("net", net.name()), json.text("phase", caffe::Phase_Name(net.phase()));
  json.integer("parameters", s.parameters), json.integer("multiply_adds", s.adds);
  json.integer("parameter_bytes", 4 * s.parameters), json.integer("blob_bytes", 4 * s.blobs);
  if (s.training) json.integer("training_bytes", 4 * s.training);
  json.array("layers");
  for (const LayerSummary& l : s.layers) {
    json.object();
    json.text("name", l.layer->name()), json.text("type", l.type);
    json.array("bottoms");
    for (const auto& name : l.bottoms) json.text("", name);
    json.end(), json.array("tops");
    for (size_t t = 0; t < l.tops.size(); ++t) {
      json.object(), json.text("name", l.tops[t]), json.array("shape");
      for (const int dim : l.shapes[t].dims()) json.integer("", dim);
      json.end(), json.end();
    }
    json.end(), json.integer("parameters", l.parameters), json.integer("multiply_adds", l.adds), json.end();
  }
  json.print();
}

int summary(const NetFlags& f, bool json) {
  DescribedNet described(f);
  const Summary summary = summarise(described);
  (json ? printJson : printText)(described.net(), summary);
  return 0;
}

}  // namespace

void addSummary(CLI::App& program, Run& chosen) {
  addCommand(
      program, "summary", "a net's layers, shapes, parameters, multiply-adds and memory",
      [](CLI::App& app) -> Run {
        auto f = std::make_shared<NetFlags>();
        addNetFlags(app, *f);
        app.get_option("--model")->required(false);
        app.add_option("filename", f->model, "as -model, and as Caffe's summarize.py has it");
        auto json = std::make_shared<bool>(false);
        app.add_flag(
            "--json", *json,
            "{net, phase, parameters, multiply_adds, parameter_bytes, blob_bytes, training_bytes (in phase TRAIN, "
            "at least), layers: "
            "[{name, type, bottoms, tops: [{name, shape}], parameters, multiply_adds}]}");
        return [f, json] {
          if (f->model.empty()) invalid("which net? Give -model, or the net prototxt");
          return summary(*f, *json);
        };
      },
      chosen);
}

}  // namespace crema::cli
