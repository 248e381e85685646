#include "host/pulse.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "base/waiting.h"
#include "cluster/patience.h"
#include "host/job_io.h"

namespace crema::host {

using cluster::patience::kBeat;

constexpr double kSlowest = 300;  // seconds that a range of a remote file may take (data/remote_file.h)

Pulse::Pulse(std::function<void(const wire::Event&)> emit, std::function<int64_t()> count, double hang,
             std::function<void(const Error&)> hung)
    : emit_(std::move(emit)), count_(std::move(count)), hang_(hang), hung_(std::move(hung)), thread_([this] {
        beat();
      }) {}

Pulse::~Pulse() {
  {
    const MutexLock lock(mutex_);
    ended_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Pulse::beat() try {
  wire::Event alive;
  alive.mutable_alive();
  int64_t seen = count_();
  double still = 0;
  MutexLock lock(mutex_);
  for (;;) {
    const double from = monotonicSeconds();
    if (waitUntil(changed_, lock, Deadline::after(kBeat), nullptr, [&]() CREMA_REQUIRES(mutex_) { return ended_; }))
      return;
    still += std::min(monotonicSeconds() - from, 2 * kBeat);  // this process may have been stopped itself
    if (const int64_t now = count_(); now != seen) seen = now, still = 0;
    if (still > hang_)
      return hung_(Error(ErrorKind::kTimeout,
                         fmt::format("process {} has got no further for {:.0f} s and hangs; is a file system that it "
                                     "reads gone, or the machine overloaded? A batch that takes longer needs a larger "
                                     "spark.crema.stepTimeout",
                                     ::getpid(), still)));
    emit_(alive);
  }
} catch (const std::exception&) {  // the host is gone, which the work learns too
}

HostPulse::HostPulse(const wire::Job& job, std::function<int64_t()> count)
    : Pulse(toHost, std::move(count), std::max(kSlowest, cluster::patience::kHangTimeouts * job.step_timeout()),
            [](const Error& why) {
              toHost(failureOf(why));
              ::_exit(1);
            }) {}

}  // namespace crema::host
