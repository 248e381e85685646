// One worker of a cluster: joins, builds its nets, trains its ranks, writes what the lead writes.
#pragma once
#include <functional>

#include "base/socket.h"
#include "cluster/host_rows.h"
#include "train/trainer.h"
#include "wire.pb.h"

namespace crema::cluster {

// Runs `job` to its end; throws an Error that the coordinator has been told of (or told us). `emit` gets Snapshot (of
// worker 0) and Done for whoever started this process; `request` is polled for stop and snapshot wishes; `interrupt`
// ends everything early. `rows`: what the host feeds.
void runWorker(const wire::Job& job, HostRows& rows, const std::function<void(const wire::Event&)>& emit,
               const std::function<train::Request()>& request, Interrupt& interrupt);

// The solver a job describes, with this worker's ranks; shared with the single-process command.
struct JobSetup {
  std::unique_ptr<kernels::Context> kernels;
  std::unique_ptr<solver::Solver> solver;
  train::TrainOptions train;
};
JobSetup setUp(const wire::Job& job, const std::string& folder, bool log, const HostRows* rows = nullptr);

wire::Event toEvent(const train::Progress& p);
wire::Event toEvent(int64_t iteration, int net, const std::vector<train::TestOutput>& outputs);
wire::Event toEvent(int64_t iteration, const solver::SnapshotFiles& files);

}  // namespace crema::cluster
