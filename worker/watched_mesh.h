// The mesh of a worker: says when the thread that trains waits for others, so that the coordinator does not blame this
// one, and which bytes have moved, and hears from it whether all wait and none do.
#pragma once
#include "base/clock.h"
#include "cluster/session.h"
#include "collective/mesh.h"

namespace crema::worker {

class WatchedMesh : public collective::Mesh {
 public:
  // connectWatched() comes before all others.
  WatchedMesh(const collective::MeshOptions& options, cluster::Session& session)
      : Mesh(options, Unconnected()), session_(session) {}
  // Mesh::connect(): another member that cannot be reached may take longer than the coordinator gives one that hangs.
  void connectWatched() {
    const collective::WaitingScope waits(*this);
    connect();
  }
  void setWaiting(bool waiting) override {
    const double now = monotonicSeconds();
    if (waiting && left_ > 0) session_.computeSeconds = session_.computeSeconds + (now - left_);
    session_.waiting = waiting;
    left_ = now;
    Mesh::setWaiting(waiting);
  }

 protected:
  double someoneAdvanced() const override { return session_.someoneAdvanced; }
  void transferred(size_t bytes) override { session_.transferred += static_cast<int64_t>(bytes); }

 private:
  cluster::Session& session_;
  double left_ = 0;
};

}  // namespace crema::worker
