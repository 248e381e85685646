#include "worker/joining.h"

#include <unistd.h>

#include "base/sha256.h"
#include "cluster/membership.h"
#include "cluster/patience.h"
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

std::vector<collective::RankRange> sharesOf(const control::ToMember::Start& start, int ranks) {
  const int n = start.number_size();
  bool fits = n > 0 && start.share_end_size() == n && start.peers_size() == n && start.iteration_size() == n &&
              start.member() >= 0 && start.member() < n;
  std::vector<collective::RankRange> shares;
  for (int w = 0, from = 0; fits && w < n; from = shares.back().hi, ++w) {
    shares.push_back({from, start.share_end(w)});
    fits = shares.back().hi >= from && start.iteration(w) >= cluster::Membership::kNewcomer;
  }
  if (!fits || shares.back().hi != ranks)
    badData(
        "the coordinator's message for generation {} fits no {} members with {} ranks; are coordinator and workers of "
        "one version?",
        start.generation(), n, ranks);
  return shares;
}

collective::MeshOptions meshOf(const wire::Job& job, const control::ToMember::Start& start, collective::PeerDoor& data,
                               const Interrupt* left) {
  collective::MeshOptions o;
  o.worker = start.member(), o.workers = start.number_size(), o.ranks = job.ranks();
  o.shares = sharesOf(start, o.ranks);
  o.numbers.assign(start.number().begin(), start.number().end());
  o.generation = start.generation();
  o.secret = cluster::secretOf(job);
  o.peers.assign(start.peers().begin(), start.peers().end());
  o.door = &data;
  o.stepTimeout = cluster::patience::kMeshTimeouts * job.step_timeout();
  o.interrupt = left;
  return o;
}

std::string stateDigest(solver::Solver& solver) {
  const auto bytes = [](Blob& b) {
    return std::string_view(reinterpret_cast<const char*>(b.data<float>()),
                            static_cast<size_t>(b.count()) * sizeof(float));
  };
  return sha256Hex(sha256Hex(bytes(solver.net().flatData())) + sha256Hex(bytes(solver.history())));
}

}  // namespace crema::worker
