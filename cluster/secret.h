// What the processes of a Job share.
#pragma once
#include "base/handshake.h"
#include "wire.pb.h"

namespace crema::cluster {

inline Secret secretOf(const wire::Job& job) { return {job.token(), job.encrypted()}; }

}  // namespace crema::cluster
