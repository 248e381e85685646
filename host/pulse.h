// Heartbeats of a process that works for its host alone, so that the host need not wait for one that is stopped or
// hangs.
#pragma once
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <thread>

#include "base/error.h"
#include "base/mutex.h"
#include "wire.pb.h"

namespace crema::host {

// Emits Alive every patience::kBeat seconds from a thread of its own, also while a slow batch is computed. When `count`,
// which grows with all that the work does and hears, has stood still for `hang` seconds, calls hung(why) once instead,
// and emits nothing more. Time in which the host does not read, so that emit waits, is not counted.
class Pulse {
 public:
  Pulse(std::function<void(const wire::Event&)> emit, std::function<int64_t()> count, double hang,
        std::function<void(const Error&)> hung);
  ~Pulse();  // nothing is emitted behind it; waits for an emit that has begun
  Pulse(const Pulse&) = delete;

 private:
  void beat();

  const std::function<void(const wire::Event&)> emit_;
  const std::function<int64_t()> count_;
  const double hang_;
  const std::function<void(const Error&)> hung_;
  Mutex mutex_;
  std::condition_variable changed_;
  bool ended_ CREMA_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

// In serveScores() and its like, around the work: of this process to the host on stdout, whose Job says how long the
// host waits. One that hangs sends Failed and ends the process, as the thread that hangs cannot be ended.
class HostPulse : public Pulse {
 public:
  HostPulse(const wire::Job& job, std::function<int64_t()> count);
};

}  // namespace crema::host
