// The processes of a cluster, `crema worker` and `crema coordinator`, from their Job to the end of the process.
#pragma once
#include <functional>

#include "wire.pb.h"

namespace crema::host {

// byHost: a host program reads the events on stdout and ends the process by closing stdin; else people read log lines.
// `readJob` is called after signal handlers are installed. Each ends the process, or throws the error that it sent as
// Failed.
int serveWorker(const std::function<wire::Job()>& readJob, bool byHost);
// The same for `crema node`, whose host says NodeInputs and hears NodeEvents (proto/node.proto).
int serveNode(const std::function<wire::Job()>& readJob);
int serveCoordinator(const std::function<wire::Job()>& readJob, bool byHost, int port);

}  // namespace crema::host
