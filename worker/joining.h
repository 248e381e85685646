// How a worker joins its run: what it says about itself, and where.
#pragma once
#include "cluster/session.h"
#include "collective/peer_door.h"
#include "control.pb.h"
#include "wire.pb.h"

namespace crema::worker {

control::ToCoordinator::Hello helloOf(const wire::Job& job, const collective::PeerDoor& data);
cluster::SessionOptions sessionOf(const wire::Job& job);

}  // namespace crema::worker
