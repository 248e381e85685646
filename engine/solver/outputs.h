// The values of a net's outputs, and Caffe's log lines for them.
#pragma once
#include <string>
#include <vector>

#include "net/net.h"

namespace crema::solver {

// Every element of every output of the last pass, in order.
std::vector<double> outputValues(const net::Net& net);

// A line for each: "    Train net output #0: loss = 2.3 (* 1 = 2.3 loss)"; `what` is "Train net output". Without
// `what`, as `caffe test` ends: "loss = 2.3 (* 1 = 2.3 loss)".
void logOutputs(const net::Net& net, const std::vector<double>& values, const std::string& what);

// Throws kInvalid unless a pass gave as many values as the one before it, which a mean over passes needs.
void checkOutputs(const net::Net& net, size_t have, size_t want);

// Means over passes.
class OutputSums {
 public:
  void add(const net::Net& net, double loss);
  int passes() const { return passes_; }
  double loss() const { return loss_ / passes_; }
  std::vector<double> means() const;

 private:
  std::vector<double> sums_;
  double loss_ = 0;
  int passes_ = 0;
};

}  // namespace crema::solver
