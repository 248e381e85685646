// `crema train -workers W`: the coordinator in this process, W child processes on loopback. Also the harness for every
// failure test.
#pragma once
#include "wire.pb.h"

namespace crema::host {

// Runs the job to its end or throws with the story of whoever failed first; no child outlives the call.
void runLocalCluster(const wire::Job& job);

}  // namespace crema::host
