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

}  // namespace crema::cluster
