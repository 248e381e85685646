// `crema train -workers W`: the coordinator in this process, W child processes on loopback. Tests of failures use it
// too.
#pragma once
#include <string>

#include "train/run.h"
#include "worker/job.h"

namespace crema::host {

// Runs to the end, or throws the error of the worker that failed first; no child outlives the call. Who has rank 0 writes
// the final model to `model`, unless that is empty. Where the run goes on without a lost worker, another process takes its
// place, three times each.
void runLocalCluster(const train::RunOptions& options, const std::string& model,
                     const worker::ClusterSettings& settings);

}  // namespace crema::host
