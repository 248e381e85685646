// What a Job asks for and what Events report, as the engine's values.
#pragma once
#include <vector>

#include "cluster/host_rows.h"
#include "train/run.h"
#include "wire.pb.h"

namespace crema::cluster {

train::RunOptions runOf(const wire::Job& job, const HostRows& rows);  // kData: the solver of another version

wire::Event toEvent(const train::Progress& p);
wire::Event toEvent(int64_t iteration, int net, const std::vector<train::TestOutput>& outputs);
wire::Event toEvent(int64_t iteration, const solver::SnapshotFiles& files);

}  // namespace crema::cluster
