// The processes of a run of nodes, from their Job to the end of the process: `crema node`, and their coordinator. Both
// are children of the Python of a driver or of a task.
#pragma once
#include "base/socket.h"
#include "wire.pb.h"

namespace crema::host {

[[noreturn]] void runNode(const wire::Job& job);
// interrupt: must live as long as the process.
[[noreturn]] void coordinateNodes(const wire::Job& job, Interrupt& interrupt);

}  // namespace crema::host
