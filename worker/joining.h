// How a worker joins its run: what it says about itself, and where.
#pragma once
#include <string>
#include <vector>

#include "cluster/session.h"
#include "collective/mesh.h"
#include "control.pb.h"
#include "solver/solver.h"
#include "wire.pb.h"

namespace crema::worker {

control::ToCoordinator::Hello helloOf(const wire::Job& job, const collective::PeerDoor& data);
cluster::SessionOptions sessionOf(const wire::Job& job);
// The ranks of each member of a generation. Throws kData for a message that no coordinator of this version sends: its lists
// have an entry for each member, the shares go up to `ranks`, and the receiver is one of the members.
std::vector<collective::RankRange> sharesOf(const control::ToMember::Start& start, int ranks);
// Of a generation; throws as sharesOf(). Both outlive the mesh.
collective::MeshOptions meshOf(const wire::Job& job, const control::ToMember::Start& start, collective::PeerDoor& data,
                               const Interrupt* left);
// SHA-256 of weights and history, which are the same on all workers behind every step.
std::string stateDigest(solver::Solver& solver);

}  // namespace crema::worker
