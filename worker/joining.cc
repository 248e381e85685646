#include "worker/joining.h"

#include <unistd.h>

#include "base/sha256.h"
#include "cluster/secret.h"
#include "worker/job.h"

namespace crema::worker {

control::ToCoordinator::Hello helloOf(const wire::Job& job, const collective::PeerDoor& data) {
  char host[256] = "?";
  ::gethostname(host, sizeof host - 1);
  control::ToCoordinator::Hello hello;
  hello.set_version(CREMA_VERSION);
  hello.set_member(job.worker());
  hello.set_attempt(job.attempt()), hello.set_stage_attempt(job.stage_attempt());
  hello.set_partition(job.partition());
  if (job.has_task()) hello.set_task(job.task()), hello.set_executor(job.executor());
  hello.set_host(fmt::format("{} {}", host, job.host()));
  hello.set_pid(::getpid());
  hello.set_data_address(data.address());
  hello.set_job_digest(jobDigest(job));
  hello.set_task_seconds(job.task_seconds());
  hello.set_unpack_seconds(job.unpack_seconds());
  return hello;
}

cluster::SessionOptions sessionOf(const wire::Job& job) {
  return {job.coordinator(),
          cluster::secretOf(job),
          fmt::format("worker {}", job.worker()),
          job.join_timeout(),
          job.step_timeout(),
          job.coordinator_listens(),
          {}};
}

std::string stateDigest(solver::Solver& solver) {
  const auto bytes = [](Blob& b) {
    return std::string_view(reinterpret_cast<const char*>(b.data<float>()),
                            static_cast<size_t>(b.count()) * sizeof(float));
  };
  return sha256Hex(sha256Hex(bytes(solver.net().flatData())) + sha256Hex(bytes(solver.history())));
}

}  // namespace crema::worker
