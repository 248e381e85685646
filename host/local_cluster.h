// `crema train -workers W`: the coordinator in this process, W child processes on loopback. Also the harness for every
// failure test.
#pragma once
#include <string>

#include "train/run.h"

namespace crema::host {

// Runs to the end, or throws with the story of whoever failed first; no child outlives the call. Worker 0 writes the
// final model to `model`, where one is named. Seconds: to wait for all workers, and without a sign of life of one.
void runLocalCluster(const train::RunOptions& options, const std::string& model, double joinTimeout,
                     double stepTimeout);

}  // namespace crema::host
