// Everything about a solver and its nets that can be judged before data and executors are there; what a host program
// (the Spark driver) asks first, so that one parser decides.
#pragma once
#include <cstdint>
#include <string>

#include "wire.pb.h"

namespace crema::host {

struct PlanRequest {
  std::string solver;                // its file
  std::string features, label;       // blobs that will be extracted, separated by commas; one more
  std::string weights, weightsName;  // the model that will be scored with, and what messages call it
  int ranks = 1;
  int64_t seed = -1;                 // where the solver sets none; negative: one is drawn
  int64_t rows = 0;                  // that the host sends to one worker
  bool train = false, test = false;  // a data layer of this phase is needed
};

// Throws what is wrong with the solver, its nets, their sources as far as they are on this machine, or the weights.
wire::Plan makePlan(const PlanRequest& request);

}  // namespace crema::host
