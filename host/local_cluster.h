// `crema train -workers W`: the coordinator in this process, W child processes on loopback. Tests of failures use it
// too.
#pragma once
#include <string>

#include "train/run.h"

namespace crema::host {

// Runs to the end, or throws the error of the worker that failed first; no child outlives the call. Worker 0 writes the
// final model to `model`, unless that is empty. Timeouts in seconds: until all workers have joined; without a heartbeat
// of one.
void runLocalCluster(const train::RunOptions& options, const std::string& model, double joinTimeout,
                     double stepTimeout);

}  // namespace crema::host
