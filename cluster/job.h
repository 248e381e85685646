// Conversions: a Job into the engine's options, and the engine's results into Events.
#pragma once
#include <vector>

#include "cluster/host_rows.h"
#include "train/run.h"
#include "wire.pb.h"

namespace crema::cluster {

// The Job of one process without what RunOptions lack: records, token, addresses, timeouts.
wire::Job jobOf(const train::RunOptions& options);
// Throws kData when the solver is of another version.
train::RunOptions runOf(const wire::Job& job, const HostRows& rows);

wire::Event toEvent(const train::Progress& p);
wire::Event toEvent(int64_t iteration, int net, const std::vector<train::TestOutput>& outputs);
wire::Event toEvent(int64_t iteration, const solver::SnapshotFiles& files);

}  // namespace crema::cluster
