// Checks of a solver and its nets that need neither data nor executors. A host program (the Spark driver) runs them
// first, so that one parser decides.
#pragma once
#include <cstdint>
#include <string>

#include "wire.pb.h"

namespace crema::host {

struct PlanRequest {
  std::string solver;                // its file
  std::string features, label;       // blobs to be extracted, separated by commas; the blob of labels
  std::string weights, weightsName;  // the model for scoring, and its name in messages
  int ranks = 1;
  int64_t seed = -1;                 // used where the solver sets none; negative: a random one
  int64_t rows = 0;                  // number of rows that the host sends to one worker
  bool train = false, test = false;  // a data layer of this phase is needed
};

// Throws an error for a wrong solver, net or model, and for wrong sources as far as they are on this machine.
wire::Plan makePlan(const PlanRequest& request);

}  // namespace crema::host
