// crema summary: a net as a table. Multiply-adds are those with weights (convolutions, inner products, recurrent
// layers) of one forward pass of a whole batch. Memory: float32 values of blobs; training adds their gradients, and the
// gradient and history of the parameters.
#include <cstdio>

#include "base/error.h"
#include "cli/described_net.h"

namespace crema::cli {
namespace {

using Row = std::vector<std::string>;

std::string join(const std::vector<std::string>& parts) {
  std::string all;
  for (const auto& p : parts) all += (all.empty() ? "" : ", ") + p;
  return all;
}

void print(const std::vector<Row>& rows) {
  std::vector<size_t> width(rows[0].size(), 0);
  for (const Row& r : rows)
    for (size_t c = 0; c < r.size(); ++c) width[c] = std::max(width[c], r[c].size());
  for (const Row& r : rows) {
    std::string line;
    for (size_t c = 0; c < r.size(); ++c)
      line += c < 4 ? fmt::format("{:<{}}  ", r[c], width[c]) : fmt::format("{:>{}}  ", r[c], width[c]);
    std::printf("%s\n", line.substr(0, line.find_last_not_of(' ') + 1).c_str());
  }
}

std::string mebibytes(int64_t values) { return fmt::format("{:.1f} MiB", static_cast<double>(values) * 4 / 1048576); }

int summary(const NetFlags& f) {
  const DescribedNet described(f);
  const Net& net = described.net();
  std::vector<Row> rows = {{"layer", "type", "bottoms", "tops", "parameters", "multiply-adds"}};
  int64_t blobs = 0, adds = 0, parameters = 0;
  for (const auto& p : net.learnables()) parameters += p.blob->count();
  for (int i = 0; i < static_cast<int>(net.layers().size()); ++i) {
    if (described.isCopy(i)) continue;
    const Layer& layer = *net.layers()[static_cast<size_t>(i)];
    int64_t own = 0;
    for (const auto& p : layer.params()) own += p->count();
    const int64_t here = layer.multiplyAdds(net.bottoms(i), net.tops(i));
    adds += here;
    std::vector<std::string> tops = described.tops(i);
    for (size_t t = 0; t < tops.size(); ++t) {
      const bool inPlace = t < net.bottoms(i).size() && net.tops(i)[t] == net.bottoms(i)[t];
      if (!inPlace) blobs += net.tops(i)[t]->count();
      tops[t] += " " + (net.tops(i)[t]->shape().axes() ? net.tops(i)[t]->shape().brief() : "scalar");
    }
    rows.push_back({layer.name(), layer.type(), join(described.bottoms(i)), join(tops), own ? grouped(own) : "",
                    here ? grouped(here) : ""});
  }
  print(rows);
  std::printf("\nnet '%s', phase %s: %s parameters, %s multiply-adds forward\n", net.name().c_str(),
              caffe::Phase_Name(net.phase()).c_str(), grouped(parameters).c_str(), grouped(adds).c_str());
  std::printf("memory: parameters %s, blobs %s; training by SGD with momentum %s\n", mebibytes(parameters).c_str(),
              mebibytes(blobs).c_str(), mebibytes(3 * parameters + 2 * blobs).c_str());
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
        return [f] {
          if (f->model.empty()) invalid("which net? Give -model, or the net prototxt");
          return summary(*f);
        };
      },
      chosen);
}

}  // namespace crema::cli
