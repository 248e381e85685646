// One worker of a cluster: joins, builds its nets, trains its ranks, writes what the lead writes.
#pragma once
#include <functional>

#include "base/socket.h"
#include "train/trainer.h"
#include "wire.pb.h"
#include "worker/host_rows.h"

namespace crema::worker {

// Runs `job` to its end; throws an Error that has been reported to the coordinator, or came from it. `emit` gets
// Snapshot (of worker 0) and Done for the process that started this one; `request` is polled for requests to stop and
// to snapshot; `interrupt` ends everything early. `rows`: what the host sends.
void runWorker(const wire::Job& job, HostRows& rows, const std::function<void(const wire::Event&)>& emit,
               const std::function<train::Request()>& request, Interrupt& interrupt);

}  // namespace crema::worker
