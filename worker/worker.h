// One worker of a cluster: joins, builds its nets, trains its ranks, writes what the lead writes. The lead is who has rank 0.
#pragma once
#include <functional>

#include "base/socket.h"
#include "train/trainer.h"
#include "wire.pb.h"
#include "worker/host_rows.h"

namespace crema::worker {

struct Callbacks {
  std::function<void(const wire::Event&)>
      emit;                                 // Snapshot (of who leads) and Done, for the process that started this one
  std::function<train::Request()> request;  // polled for requests to stop and to snapshot, by one thread at a time
  std::function<void()> leads = nullptr;    // this worker has rank 0 from now on, and logs, tests and writes
};

// Runs `job` to its end, over all generations of the run (cluster/membership.h); throws an Error that has been reported to
// the coordinator, or came from it. `interrupt` ends everything early. `rows`: what the host sends.
void runWorker(const wire::Job& job, HostRows& rows, const Callbacks& host, Interrupt& interrupt);

}  // namespace crema::worker
