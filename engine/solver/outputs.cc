#include "solver/outputs.h"

#include "base/error.h"
#include "base/log.h"

namespace crema::solver {

std::vector<double> outputValues(const net::Net& net) {
  std::vector<double> values;
  for (const auto& name : net.outputs()) {
    const Blob& blob = net.blob(name);
    for (int k = 0; k < blob.count(); ++k) values.push_back(blob.dataAt(k));
  }
  return values;
}

void logOutputs(const net::Net& net, const std::vector<double>& values, const std::string& what) {
  size_t at = 0;
  for (const auto& name : net.outputs()) {
    const double weight = net.outputLossWeight(name);
    for (int k = 0; k < net.blob(name).count() && at < values.size(); ++k, ++at) {
      const std::string head = what.empty() ? "" : fmt::format("    {} #{}: ", what, at);
      const std::string weighted = weight ? fmt::format(" (* {:.6g} = {:.6g} loss)", weight, weight * values[at]) : "";
      LOG_INFO("{}{} = {:.6g}{}", head, name, values[at], weighted);
    }
  }
}

void checkOutputs(const net::Net& net, size_t have, size_t want) {
  if (have == want) return;
  std::string shapes;
  for (const auto& name : net.outputs())
    shapes += fmt::format("{}{} {}", shapes.empty() ? "" : ", ", name, net.blob(name).shape().brief());
  invalid(
      "the outputs of net '{}' have {} values in this batch ({}) and had {} before, so they have no mean; lead an "
      "output whose size varies into a Silence layer",
      net.name(), have, shapes, want);
}

void OutputSums::add(const net::Net& net, double loss) {
  const std::vector<double> values = outputValues(net);
  if (passes_ == 0) sums_.assign(values.size(), 0);
  checkOutputs(net, values.size(), sums_.size());
  for (size_t k = 0; k < values.size(); ++k) sums_[k] += values[k];
  loss_ += loss;
  ++passes_;
}

std::vector<double> OutputSums::means() const {
  std::vector<double> means = sums_;
  for (double& m : means) m /= passes_;
  return means;
}

}  // namespace crema::solver
