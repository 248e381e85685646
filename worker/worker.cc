#include "worker/worker.h"

#include <unistd.h>

#include <algorithm>
#include <functional>
#include <memory>

#include "base/log.h"
#include "cluster/membership.h"
#include "cluster/patience.h"
#include "cluster/secret.h"
#include "cluster/session.h"
#include "worker/job.h"
#include "worker/joining.h"
#include "worker/publications.h"
#include "worker/requests.h"
#include "worker/watched_mesh.h"

namespace crema::worker {
namespace {

using cluster::Session;
namespace patience = cluster::patience;

// One worker's run, over all generations of it.
class Run {
 public:
  Run(const wire::Job& job, const HostRows& rows, Session& session, collective::PeerDoor& data, const Callbacks& host,
      Interrupt& interrupt)
      : job_(job),
        session_(session),
        data_(data),
        host_(host),
        interrupt_(interrupt),
        requests_(host.request),
        run_(train::setUp(runOf(job, rows))),
        publications_(
            job.publishes(), patience::kPublicationTimeouts * job.step_timeout(), rows.published,
            [this](const wire::Event& event) { session_.report(event); }, [this] { waitsForHost(); }, interrupt),
        trainer_(*run_.solver, nullptr, run_.train, hooks(rows)) {}

  void run(const HostRows& rows) {
    rows.waitForRows(interrupt_);
    session_.ready(stateDigest(*run_.solver), run_.solver->recordsRead());
    for (bool over = false; !over;) {
      requests_.waits();
      over = generation(session_.waitForStart([this] {
        if (whole_ && requests_.endsBetween()) endAlone();
      }));
    }
    wire::Event done;
    done.mutable_done()->set_iteration(run_.solver->iteration());
    done.mutable_done()->set_model(model_);
    done.mutable_done()->set_skipped(run_.solver->recordsSkipped());
    done.mutable_done()->set_seconds(trainer_.seconds());
    done.mutable_done()->set_records(run_.train.recordsPerStep * run_.solver->iteration());
    host_.emit(done);
  }

 private:
  using Start = control::ToMember::Start;

  // Takes part in it to its end; true when that is the run's.
  bool generation(const Start& start) {
    Interrupt left(interrupt_);
    left_ = &left;
    alone_ = false;
    requests_.waits();
    session_.watch(&left, [this] { return alone_ = alone_ || (whole_ && requests_.endsInside(session_)); });
    run_.solver->endPassesBy(&left);
    const std::unique_ptr<Interrupt, std::function<void(Interrupt*)>> watched(&left, [this](Interrupt*) {
      endExchange();  // whose threads watch it as well
      session_.watch(nullptr);
      run_.solver->endPassesBy(nullptr);
    });
    return tryGeneration(start);
  }

  void endExchange() {
    trainer_.leaveExchange();
    mesh_.reset();
  }

  // That others cannot be reached is no end, nor is an error while the generation is left: the state is that of the last
  // update. Any other error is of this worker, and would come again.
  bool tryGeneration(const Start& start) {
    cluster::Unreached others;
    std::string story;
    try {
      if (train(start)) return true;
    } catch (const collective::LostPeers& e) {
      if (interrupt_.raised()) throw;
      for (const int w : e.workers()) others.members.push_back(start.number(w));
      others.ended = e.ended(), story = e.what();
    } catch (const Error& e) {
      const bool stopped = e.kind() == ErrorKind::kStopped, leaves = told_ && stopped;
      if (interrupt_.raised() || (alone_ ? !stopped : leaves || !session_.leaving())) throw;
    }
    if (alone_) endAlone();
    leave(others, story);
    return false;
  }

  // Its connections end behind that message: others would take their end for its cause.
  void leave(const cluster::Unreached& others, const std::string& story) {
    trainer_.leaveExchange();
    interrupt_.check();
    session_.paused(whole_ ? run_.solver->iteration() : cluster::Membership::kNewcomer, others,
                    session_.leaving() ? "" : story, taken_);  // the coordinator knows more already
    mesh_.reset();
  }

  // false: it has been left between two steps.
  bool train(const Start& start) {
    meet(start);
    trainer_.run();
    if (trainer_.paused() && told_) throw Error(ErrorKind::kStopped, "it was told to end (SIGTERM)");
    if (trainer_.paused()) return false;
    publications_.waitForAll();
    if (lead_ && trainer_.ended()) throw endedEarly(*run_.solver, run_.train, train::Request::kEnd);
    model_ = lead_ && !job_.model().empty() ? train::saveFinalModel(*run_.solver, job_.model()) : "";
    if (!model_.empty()) handOver(model_);
    session_.finished(run_.solver->iteration(), stateDigest(*run_.solver));
    return session_.waitForBye();
  }

  // Before this worker says that it has finished: as long as it has not, others can do the same in its place.
  void handOver(const std::string& model) {
    if (!job_.model_home().empty()) return session_.sendModel(model);
    if (!job_.publishes()) return LOG_INFO("Final model: {}", model);
    wire::Event event;
    event.mutable_model()->set_path(model);
    publications_.taken(event);
    host_.emit(event);
    publications_.waitForAll();
  }

  // Connects to the members of the generation; those that are behind take the state of one that is ahead.
  void meet(const Start& start) {
    lead_ = start.member() == 0;
    if (lead_ && host_.leads) host_.leads();
    const collective::MeshOptions o = meshOf(job_, start, data_, left_);
    whole_ = whole_ || start.generation() == 1;
    if (o.workers > 1) mesh_ = std::make_unique<WatchedMesh>(o, session_), mesh_->connectWatched();
    trainer_.changeWorkers(mesh_.get(), o.shares[static_cast<size_t>(o.worker)], o.workers);
    const auto& at = start.iteration();
    const auto furthest = std::max_element(at.begin(), at.end());
    const auto behind = [&](int w) { return at[w] < *furthest; };
    if (std::any_of(at.begin(), at.end(), [&](int64_t i) { return i < *furthest; }))
      trainer_.catchUp(static_cast<int>(furthest - at.begin()), behind);
    whole_ = true, reported_ = 0;  // the first step of a generation ends a pause
    trainer_.knowsSnapshot(start.snapshot());
    owesSnapshot_ = lead_ && owed(start.snapshot());
  }

  // Whether a worker that led before, and is lost, owed a snapshot, which it had not taken or not brought where it
  // belongs. One that is due now is taken in any case.
  bool owed(int64_t last) const {
    const int every = run_.solver->param().snapshot();
    const int64_t at = run_.solver->iteration();
    return every > 0 && at % every != 0 && at / every * every > std::max(last, began_);
  }

  train::TrainHooks hooks(const HostRows& rows) {
    train::TrainHooks hooks;
    hooks.request = [this] { return requested(); };
    hooks.snapshots = [&rows] { return rows.snapshotsAsked.load(); };
    hooks.beat = [this](int64_t iteration) {
      left_->check();
      publications_.reportPublished();
      session_.iteration = iteration;
      ++session_.passes;
    };
    hooks.progress = [this](const train::Progress& p) { progress(p); };
    hooks.spent = [this](const train::Spent& s) { session_.spent(messageOf(s)); };
    hooks.test = [this](int64_t iteration, int net, const std::vector<train::TestOutput>& outputs) {
      if (lead_) session_.report(toEvent(iteration, net, outputs));
    };
    hooks.snapshot = [this](int64_t iteration, const solver::SnapshotFiles& files) {
      const wire::Event event = toEvent(iteration, files);
      taken_ = iteration;
      publications_.taken(event);
      host_.emit(event);
    };
    return hooks;
  }

  // A scheduler that ends this process gives it some seconds, and others may be waited for for minutes. With a snapshot of
  // the last update, where one is wanted; others that are asked as well write the same files.
  [[noreturn]] void endAlone() {
    left_ = &interrupt_;
    endExchange();
    const train::Request told = requests_.all();
    const bool wanted = train::wantsSnapshot(told) || run_.solver->param().snapshot_after_train();
    if (wanted && taken_ != run_.solver->iteration()) trainer_.snapshotAlone();  // another worker's may be on its way
    publications_.waitForAll();
    throw endedEarly(*run_.solver, run_.train, told, wanted);
  }

  train::Request requested() {
    const train::Request owed = std::exchange(owesSnapshot_, false) ? train::Request::kSnapshot : train::Request::kNone;
    const train::Request r = requests_.take() | owed;
    told_ = told_ || train::wantsEnd(r);
    const train::Request leave = told_ && job_.replacement() != "fail" ? train::Request::kLeave : r;
    return session_.pauseAsked() ? leave | train::Request::kPause : leave;
  }

  void progress(const train::Progress& p) {
    if (!lead_) return;
    const double now = monotonicSeconds();
    if (now - reported_ < patience::kProgress && p.iteration + 1 < p.maxIter) return;
    reported_ = now;
    session_.report(toEvent(p));
  }

  void waitsForHost() {
    ++session_.passes;
    left_->check();
  }

  const wire::Job& job_;
  Session& session_;
  collective::PeerDoor& data_;
  const Callbacks& host_;
  Interrupt& interrupt_;
  Interrupt* left_ = nullptr;  // of the present generation
  Requests requests_;
  train::Run run_;
  Publications publications_;
  std::unique_ptr<WatchedMesh> mesh_;  // of the present generation; null: alone
  train::Trainer trainer_;
  std::string model_;
  int64_t began_ = run_.solver->iteration(), taken_ = -1;  // taken_: its own last snapshot
  bool owesSnapshot_ = false;
  bool lead_ = false, told_ = false;  // told_: by SIGTERM, to end
  std::atomic<bool> whole_{false};    // its state is one of the run's: that of the beginning, or taken over
  double reported_ = 0;
  std::atomic<bool> alone_{false};  // it leaves the present generation, and ends
};

// Reports a failure of this worker's own host, of which the coordinator knows nothing yet.
void reportHostFailure(Session& session, const Interrupt& interrupt) {
  try {
    interrupt.check();
  } catch (const Error& e) {
    session.failed(e);
    session.coordinatorsError(patience::kItsError);
  }
}

void runToItsEnd(const wire::Job& job, HostRows& rows, const Callbacks& host, Interrupt& interrupt) {
  collective::PeerDoor data(job.host().empty() ? "127.0.0.1" : job.host(), cluster::secretOf(job),
                            fmt::format("worker {}'s port", job.worker()));
  Session session(sessionOf(job), helloOf(job, data), interrupt, &rows.activity);
  try {
    Run(job, rows, session, data, host, interrupt).run(rows);
  } catch (const cluster::RunOver&) {
    throw;
  } catch (...) {
    if (session.place() >= 0) {  // the host starts another process, as that worker
      wire::Event event;
      event.mutable_place()->set_worker(session.place());
      return host.emit(event);
    }
    const Error e = asError(std::current_exception());
    if (interrupt.raised()) {  // by the coordinator or by the process that started this one
      if (rows.hostFailed) reportHostFailure(session, interrupt);
      interrupt.check();
    }
    session.failed(e);
    // After a lost peer the coordinator's error, which names the cause, replaces this one.
    const bool peer = e.kind() == ErrorKind::kPeer || e.kind() == ErrorKind::kTimeout;
    const auto cause = session.coordinatorsError(peer ? patience::kPeersError : patience::kItsError);
    session.checkNeeded();
    if (cause) throw *cause;
    throw;
  }
}

}  // namespace

void runWorker(const wire::Job& job, HostRows& rows, const Callbacks& host, Interrupt& interrupt) {
  try {
    runToItsEnd(job, rows, host, interrupt);
  } catch (const cluster::RunOver& e) {
    // The others have ended the run without this one, which may come at any time, or replaces one of them: it is no error.
    const bool mayStayEmpty = job.first_workers() > 0 || job.least_workers() > 0;
    const bool replaces = job.attempt() + job.stage_attempt() > 0 && job.replacement() != "fail";
    if (!mayStayEmpty && !replaces) throw;
    LOG_WARNING("worker {} does nothing: {}", job.worker(), e.what());
    wire::Event done;
    done.mutable_done();
    host.emit(done);
  }
}

}  // namespace crema::worker
