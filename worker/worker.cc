#include "worker/worker.h"

#include <unistd.h>

#include "base/log.h"
#include "base/sha256.h"
#include "cluster/patience.h"
#include "cluster/session.h"
#include "worker/job.h"
#include "worker/publications.h"

namespace crema::worker {
namespace {

using cluster::Session;
namespace patience = cluster::patience;

// Says when the thread that trains waits for others, so that the coordinator does not blame this worker.
class WatchedExchange : public collective::Exchange {
 public:
  WatchedExchange(collective::Exchange& inner, Session& session) : inner_(inner), session_(session) {}
  int worker() const override { return inner_.worker(); }
  int workers() const override { return inner_.workers(); }
  void allReduce(const std::vector<const float*>& pieces, float* total, int64_t count,
                 const collective::Tag& tag) override {
    inner_.allReduce(pieces, total, count, tag);
  }
  void abandon() override { inner_.abandon(); }
  void setWaiting(bool waiting) override {
    const double now = monotonicSeconds();
    if (waiting && left_ > 0) session_.computeSeconds = session_.computeSeconds + (now - left_);
    session_.waiting = waiting;
    left_ = now;
  }

 private:
  collective::Exchange& inner_;
  Session& session_;
  double left_ = 0;
};

control::ToCoordinator::Hello helloOf(const wire::Job& job, const collective::PeerDoor& data) {
  char host[256] = "?";
  ::gethostname(host, sizeof host - 1);
  control::ToCoordinator::Hello hello;
  hello.set_version(CREMA_VERSION);
  hello.set_member(job.worker());
  hello.set_attempt(job.attempt());
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
          job.token(),
          fmt::format("worker {}", job.worker()),
          job.join_timeout(),
          job.step_timeout(),
          job.coordinator_listens(),
          {}};
}

std::string stateDigest(solver::Solver& solver) {
  const auto bytes = [](Blob& b, int count) {
    return std::string_view(reinterpret_cast<const char*>(b.data<float>()), static_cast<size_t>(count) * sizeof(float));
  };
  const int count = solver.net().flatData().count();
  return sha256Hex(sha256Hex(bytes(solver.net().flatData(), count)) +
                   sha256Hex(bytes(solver.history(), solver.history().count())));
}

train::TrainHooks hooksFor(Session& session, bool lead, Publications& publications, const Interrupt& interrupt,
                           const std::function<void(const wire::Event&)>& emit,
                           const std::function<train::Request()>& request) {
  train::TrainHooks hooks;
  hooks.request = request;
  hooks.beat = [&](int64_t iteration) {
    interrupt.check();
    publications.reportPublished();
    session.iteration = iteration;
    ++session.passes;
  };
  if (!lead) return hooks;
  hooks.progress = [&session, last = 0.0](const train::Progress& p) mutable {
    const double now = monotonicSeconds();
    if (now - last < patience::kProgress && p.iteration + 1 < p.maxIter) return;
    last = now;
    session.report(toEvent(p));
  };
  hooks.test = [&session](int64_t iteration, int net, const std::vector<train::TestOutput>& outputs) {
    session.report(toEvent(iteration, net, outputs));
  };
  hooks.snapshot = [&publications, emit](int64_t iteration, const solver::SnapshotFiles& files) {
    const wire::Event event = toEvent(iteration, files);
    publications.taken(event);
    emit(event);
  };
  return hooks;
}

// A worker got SIGTERM: a scheduler wants its machine or container back. The snapshot is written; the run has not
// succeeded.
[[noreturn]] void endedEarly(const solver::Solver& solver, const train::TrainOptions& o) {
  const solver::SnapshotFiles files =
      solver.snapshotNames(o.publishedPrefix.empty() ? o.snapshotPrefix : o.publishedPrefix);
  throw Error(
      ErrorKind::kStopped,
      fmt::format("a worker was told to end (SIGTERM), so training has stopped at iteration {} of {}; go on from "
                  "there with -snapshot {} (on Spark with -weights {} beside it)",
                  solver.iteration(), solver.param().max_iter(), files.state, files.model));
}

void train(const wire::Job& job, const HostRows& rows, Session& session, collective::PeerDoor& data,
           const std::function<void(const wire::Event&)>& emit, const std::function<train::Request()>& request,
           Interrupt& interrupt) {
  const bool lead = job.worker() == 0;
  train::Run run = train::setUp(runOf(job, rows));
  rows.waitForRows(interrupt);
  session.ready(stateDigest(*run.solver), run.solver->recordsRead());
  const auto start = session.waitForStart();
  collective::MeshOptions o;
  o.worker = job.worker(), o.workers = job.workers(), o.ranks = job.ranks();
  o.generation = start.generation();
  o.token = job.token();
  o.peers.assign(start.peers().begin(), start.peers().end());
  o.door = &data;
  o.stepTimeout = patience::kMeshTimeouts * job.step_timeout();
  o.interrupt = &interrupt;
  collective::Mesh mesh(o);
  WatchedExchange exchange(mesh, session);
  Publications publications(
      job.publishes(), patience::kPublicationTimeouts * job.step_timeout(), rows.published,
      [&](const wire::Event& event) { session.report(event); }, [&] { ++session.passes; }, interrupt);
  train::Trainer trainer(*run.solver, job.workers() > 1 ? &exchange : nullptr, run.train,
                         hooksFor(session, lead, publications, interrupt, emit, request));
  trainer.run();
  publications.waitForAll();
  if (lead && trainer.ended()) endedEarly(*run.solver, run.train);
  const std::string model = lead && !job.model().empty() ? run.solver->saveModel(job.model()) : "";
  if (!model.empty() && !job.model_home().empty()) session.sendModel(model);
  session.finished(run.solver->iteration(), stateDigest(*run.solver));
  session.waitForBye();
  wire::Event done;
  done.mutable_done()->set_iteration(run.solver->iteration());
  done.mutable_done()->set_model(model);
  done.mutable_done()->set_skipped(run.solver->recordsSkipped());
  done.mutable_done()->set_seconds(trainer.seconds());
  done.mutable_done()->set_records(run.train.recordsPerStep * run.solver->iteration());
  emit(done);
}

// Reports a failure of this worker's own host, of which the coordinator knows nothing yet.
void reportHostFailure(Session& session, const Interrupt& interrupt) {
  try {
    interrupt.check();
  } catch (const Error& e) {
    session.failed(e);
    session.coordinatorsError(patience::kItsError);
  }
}

}  // namespace

void runWorker(const wire::Job& job, HostRows& rows, const std::function<void(const wire::Event&)>& emit,
               const std::function<train::Request()>& request, Interrupt& interrupt) {
  collective::PeerDoor data(job.host().empty() ? "127.0.0.1" : job.host(), job.token(),
                            fmt::format("worker {}'s port", job.worker()));
  Session session(sessionOf(job), helloOf(job, data), interrupt, &rows.activity);
  try {
    train(job, rows, session, data, emit, request, interrupt);
  } catch (...) {
    const Error e = asError(std::current_exception());
    if (interrupt.raised()) {  // by the coordinator or by the process that started this one
      if (rows.hostFailed) reportHostFailure(session, interrupt);
      interrupt.check();
    }
    session.failed(e);
    // After a lost peer the coordinator's error, which names the cause, replaces this one.
    const bool peer = e.kind() == ErrorKind::kPeer || e.kind() == ErrorKind::kTimeout;
    if (auto cause = session.coordinatorsError(peer ? patience::kPeersError : patience::kItsError)) throw *cause;
    throw;
  }
}

}  // namespace crema::worker
