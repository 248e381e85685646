// Snapshots, and the final model, on their way through the host: each is reported once it is where users will look for it.
#pragma once
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>

#include "base/socket.h"
#include "wire.pb.h"

namespace crema::worker {

// Used by the training thread alone.
class Publications {
 public:
  // byHost: the host publishes them, in the order in which they were taken, and counts them in `published`;
  // else each is reported at once. patience: seconds that each may take from when those before it are published; then
  // both functions below throw kIo and name it: another worker's host may publish it. waiting: called while waitForAll()
  // waits, so that the coordinator sees a worker that waits for its host and does not take it for one that hangs.
  Publications(bool byHost, double patience, const std::atomic<int64_t>& published,
               std::function<void(const wire::Event&)> report, std::function<void()> waiting,
               const Interrupt& interrupt);
  void taken(const wire::Event& event);  // of a snapshot or of the model
  void reportPublished();                // those that the host has confirmed since
  void waitForAll();                     // throws the interrupt's error as well

 private:
  void checkPatience() const;

  const bool byHost_;
  const double patience_;
  const std::atomic<int64_t>& published_;
  const std::function<void(const wire::Event&)> report_;
  const std::function<void()> wait_;
  const Interrupt& interrupt_;
  std::deque<wire::Event> waiting_;
  double since_ = 0;  // when the first of them became that
  int64_t reported_ = 0;
};

}  // namespace crema::worker
