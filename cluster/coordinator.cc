#include "cluster/coordinator.h"

#include <map>
#include <vector>

#include "base/file.h"
#include "base/log.h"
#include "cluster/doorman.h"
#include "collective/tree.h"

namespace crema {

std::string jobDigest(const wire::Job& job) {
  return sha256Hex(fmt::format("{}|{}|{}|{}|", CREMA_VERSION, job.ranks(), job.workers(), job.solver().size()) +
                   job.solver());
}

class Coordinator::State {
 public:
  State(const CoordinatorOptions& options, Emit emit)
      : options_(options), emit_(std::move(emit)), doorman_(options.host, options.port, options.token) {
    ranksOfWorker(0, options.workers, options.ranks);  // checks both numbers
    members_.resize(static_cast<size_t>(options.workers));
  }
  std::string address() const { return doorman_.address(); }

  void run(const Interrupt* stop) {
    wire::Event listening;
    listening.mutable_listening()->set_address(address());
    emit_(listening);
    try {
      gather(stop);
      start();
      while (count(&Member::finished) < options_.workers) turn(Deadline::after(0.5), stop);
      finish();
    } catch (Error& e) {
      abortAll(e);
      throw;
    }
  }

 private:
  struct Member {
    std::shared_ptr<Channel> channel;
    control::ToCoordinator::Hello hello;
    control::ToCoordinator::Beat beat;
    bool ready = false, finished = false;
    double heard = 0,
           moved = 0;  // when it last said anything; when its training thread last moved (or waited for others)
    std::string digest;
  };

  int count(bool Member::*flag) const {
    int n = 0;
    for (const auto& m : members_) n += m.*flag;
    return n;
  }

  std::string describe(int w) const {
    const RankRange r = ranksOfWorker(w, options_.workers, options_.ranks);
    const Member& m = members_[static_cast<size_t>(w)];
    const std::string ranks =
        r.hi - r.lo == 1 ? fmt::format("rank {}", r.lo) : fmt::format("ranks {} to {}", r.lo, r.hi - 1);
    return fmt::format("worker {} ({}, host {}, pid {})", w, ranks, m.hello.host(), m.hello.pid());
  }

  std::string missing() const {
    std::string list;
    for (size_t w = 0; w < members_.size(); ++w)
      if (!members_[w].ready)
        list += fmt::format("{}worker {}{}", list.empty() ? "" : ", ", w,
                            members_[w].channel ? " (joined, not ready)" : "");
    return list;
  }

  void gather(const Interrupt* stop) {
    const Deadline deadline = Deadline::after(options_.joinTimeout);
    while (count(&Member::ready) < options_.workers) {
      turn(Deadline::earlier(deadline, Deadline::after(0.5)), stop);
      if (deadline.passed() && count(&Member::ready) < options_.workers)
        throw Error(
            ErrorKind::kTimeout,
            fmt::format("{} workers wanted, {} here; waited {:.0f} s; missing: {}. Free that many executor slots, or "
                        "run fewer workers (the model is the same), or wait longer with a larger join timeout",
                        options_.workers, count(&Member::ready), options_.joinTimeout, missing()));
    }
  }

  void start() {
    control::ToWorker message;
    message.mutable_start()->set_generation(1);
    for (const auto& m : members_) message.mutable_start()->add_peers(m.hello.data_address());
    for (size_t w = 0; w < members_.size(); ++w) tell(w, message);
    for (auto& m : members_) m.moved = monotonicSeconds();
    training_ = true;
  }

  // One turn of the loop: everything that has come, then signs of life in both directions.
  void turn(Deadline deadline, const Interrupt* stop) {
    if (auto in = doorman_.next(deadline, stop)) {
      handle(*in);
      while ((in = doorman_.next(Deadline::after(0), stop))) handle(*in);
    }
    const double now = monotonicSeconds();
    if (now - lastAlive_ >= 1) {
      lastAlive_ = now;
      control::ToWorker alive;
      alive.mutable_alive();
      for (size_t w = 0; w < members_.size(); ++w)
        if (members_[w].channel) tell(w, alive);
    }
    for (size_t w = 0; w < members_.size(); ++w) checkLife(static_cast<int>(w), now);
  }

  void checkLife(int w, double now) const {
    const Member& m = members_[static_cast<size_t>(w)];
    if (!m.channel || m.finished) return;
    if (now - m.heard > options_.stepTimeout)
      throw Error(ErrorKind::kTimeout, fmt::format("{} has been silent for {:.0f} s in step {}: stopped, overloaded or "
                                                   "cut off. See its log; restart from the "
                                                   "last snapshot with -snapshot",
                                                   describe(w), now - m.heard, m.beat.iteration()));
    // A thread that computes shows it with every batch; ten times the timeout for one batch is more than slow.
    if (training_ && now - m.moved > 10 * options_.stepTimeout)
      throw Error(ErrorKind::kTimeout, fmt::format("{} has not finished a batch for {:.0f} s in step {}; see its log",
                                                   describe(w), now - m.moved, m.beat.iteration()));
  }

  void tell(size_t w, const control::ToWorker& message) {
    try {
      members_[w].channel->send(message, Deadline::after(5));
    } catch (const Error&) {
      // its own connection's end, or its silence, will be reported with more words
    }
  }

  int find(const std::shared_ptr<Channel>& channel) const {
    for (size_t w = 0; w < members_.size(); ++w)
      if (members_[w].channel == channel) return static_cast<int>(w);
    return -1;
  }

  void handle(const Doorman::Incoming& in) {
    const int w = find(in.from);
    if (w < 0) {
      if (in.message.has_hello()) admit(in);
      return;
    }
    Member& m = members_[static_cast<size_t>(w)];
    m.heard = monotonicSeconds();
    if (!in.lost.empty()) {
      if (m.finished) return;
      throw Error(ErrorKind::kPeer, fmt::format("{} was lost in step {}: {} (the process ended or was killed). See the "
                                                "end of its log; restart from the last "
                                                "snapshot with -snapshot",
                                                describe(w), m.beat.iteration(), in.lost));
    }
    switch (in.message.what_case()) {
      case control::ToCoordinator::kReady:
        m.ready = true, m.moved = m.heard;
        break;
      case control::ToCoordinator::kBeat:
        if (in.message.beat().passes() != m.beat.passes() || in.message.beat().waiting()) m.moved = m.heard;
        m.beat = in.message.beat();
        break;
      case control::ToCoordinator::kReport:
        forward(in.message.report());
        break;
      case control::ToCoordinator::kFailed:
        failed(w, in.message.failed());
        break;
      case control::ToCoordinator::kFinished:
        m.finished = true;
        m.digest = in.message.finished().state_digest();
        m.beat.set_iteration(in.message.finished().iteration());
        break;
      default:
        break;
    }
  }

  // A worker that lost a peer knows less than the peer's own connection: give that a moment to speak.
  [[noreturn]] void failed(int w, const control::ToCoordinator::Failed& f) {
    if (f.kind() == name(ErrorKind::kPeer)) {
      const Deadline moment = Deadline::after(1);
      while (auto in = doorman_.next(moment, nullptr))
        if (in->from != members_[static_cast<size_t>(w)].channel) handle(*in);
    }
    throw Error(ErrorKind::kPeer, fmt::format("{} failed in step {}: {}", describe(w), f.iteration(), f.story()));
  }

  void admit(const Doorman::Incoming& in) {
    const auto& hello = in.message.hello();
    const auto w = static_cast<size_t>(hello.worker());
    std::string refuse;
    if (hello.version() != CREMA_VERSION)
      refuse = fmt::format("version {} cannot join version {}; use one executable everywhere", hello.version(),
                           CREMA_VERSION);
    else if (hello.worker() < 0 || w >= members_.size())
      refuse = fmt::format("there is no worker {}; this run has workers 0 to {}", hello.worker(), options_.workers - 1);
    else if (members_[w].channel)
      refuse = fmt::format("worker {} is already here (host {}, pid {})", w, members_[w].hello.host(),
                           members_[w].hello.pid());
    else if (hello.job_digest() != options_.jobDigest)
      refuse = fmt::format(
          "worker {} has a different job than the coordinator: start all with the same solver, net, ranks and workers",
          w);
    if (!refuse.empty()) {
      control::ToWorker message;
      message.mutable_abort()->set_story(refuse);
      message.mutable_abort()->set_kind(name(ErrorKind::kInvalid));
      try {
        in.from->send(message, Deadline::after(5));
      } catch (const Error&) {
      }
      LOG_WARNING("refused a worker from {}: {}", hello.host(), refuse);
      return;
    }
    members_[w].channel = in.from;
    members_[w].hello = hello;
    members_[w].heard = monotonicSeconds();
    int have = 0;
    for (const auto& m : members_) have += m.channel != nullptr;
    wire::Event joined;
    auto* j = joined.mutable_joined();
    j->set_worker(hello.worker()), j->set_host(hello.host()), j->set_have(have), j->set_want(options_.workers);
    emit_(joined);
  }

  void forward(wire::Event event) {
    if (event.has_progress() && options_.workers > 1) {
      int slowest = -1;
      double most = -1;
      for (size_t w = 0; w < members_.size(); ++w)
        if (members_[w].beat.compute_seconds() > most)
          most = members_[w].beat.compute_seconds(), slowest = static_cast<int>(w);
      event.mutable_progress()->set_slowest_worker(slowest);
    }
    emit_(event);
  }

  void finish() {
    for (size_t w = 1; w < members_.size(); ++w)
      if (members_[w].digest != members_[0].digest)
        throw Error(
            ErrorKind::kInternal,
            fmt::format(
                "{} ended with another state than {}; the model must not be trusted. Please report this with the logs",
                describe(static_cast<int>(w)), describe(0)));
    control::ToWorker bye;
    bye.mutable_bye();
    for (size_t w = 0; w < members_.size(); ++w) tell(w, bye);
    // Workers hang up after Bye; leaving earlier could cut the message off.
    const Deadline deadline = Deadline::after(5);
    for (size_t gone = 0; gone < members_.size();) {
      const auto in = doorman_.next(deadline, nullptr);
      if (!in) break;
      gone += !in->lost.empty() && find(in->from) >= 0;
    }
  }

  void abortAll(const Error& why) {
    control::ToWorker message;
    message.mutable_abort()->set_story(why.what());
    message.mutable_abort()->set_kind(name(why.kind()));
    size_t told = 0;
    for (size_t w = 0; w < members_.size(); ++w)
      if (members_[w].channel) tell(w, message), ++told;
    const Deadline deadline = Deadline::after(2);
    while (told > 0) {
      const auto in = doorman_.next(deadline, nullptr);
      if (!in) break;
      told -= !in->lost.empty() && find(in->from) >= 0;
    }
  }

  CoordinatorOptions options_;
  Emit emit_;
  std::vector<Member> members_;
  double lastAlive_ = 0;
  bool training_ = false;
  Doorman doorman_;
};

Coordinator::Coordinator(const CoordinatorOptions& options, Emit emit)
    : state_(std::make_unique<State>(options, std::move(emit))) {}
Coordinator::~Coordinator() = default;
std::string Coordinator::address() const { return state_->address(); }
void Coordinator::run(const Interrupt* stop) { state_->run(stop); }

}  // namespace crema
