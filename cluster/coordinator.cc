#include "cluster/coordinator.h"

#include <algorithm>
#include <vector>

#include "base/log.h"
#include "cluster/doorman.h"
#include "cluster/patience.h"
#include "cluster/roster.h"
#include "cluster/session.h"

namespace crema::cluster {

class Coordinator::State {
 public:
  State(const CoordinatorOptions& options, std::unique_ptr<Work> work, Emit emit)
      : options_(options),
        work_(std::move(work)),
        emit_(std::move(emit)),
        roster_(options.members, work_->naming()),
        doorman_(options.host, options.port, options.token, options.listener) {}
  std::string address() const { return doorman_.address(); }
  void send(const wire::Note& note) {
    control::ToMember message;
    *message.mutable_note() = note;
    doorman_.post([this, message] { roster_.tellAll(message); });
  }
  void askForEnd() {
    doorman_.post([this] { asked_ = true; });
  }

  void run(const Interrupt* stop) {
    wire::Event listening;
    listening.mutable_listening()->set_address(address());
    emit_(listening);
    try {
      gather(stop);
      if (!over()) start();
      while (!over()) turn(Deadline::after(patience::kTurn), stop);
      finish();
    } catch (Error& e) {
      abortAll(e);
      throw;
    }
  }

 private:
  bool over() const { return work_->over(roster_, asked_); }

  int64_t presentStep() {
    int64_t step = roster_.latestBeat();
    const Deadline moment = Deadline::after(patience::kLostStep);
    while (auto in = doorman_.next(moment, nullptr)) {
      if (in->call) in->call();
      if (!roster_.watches(in->from)) continue;
      if (in->message.has_report()) forward(in->message.report());
      if (!in->message.has_failed()) continue;
      step = std::max(step, in->message.failed().iteration());
      break;
    }
    return step;
  }

  void gather(const Interrupt* stop) {
    const Deadline deadline = Deadline::after(options_.joinTimeout);
    while (roster_.count(&Member::ready) < options_.members && !over()) {
      const Deadline soon = Deadline::after(patience::kTurn);
      turn(deadline.passed() ? soon : Deadline::earlier(deadline, soon), stop);
      if (deadline.passed() && roster_.late(monotonicSeconds() - options_.joinTimeout))
        throw roster_.tooFew(options_.joinTimeout, work_->remedyForMissing());
    }
  }

  void start() {
    work_->checkStart(roster_);
    control::ToMember message;
    message.mutable_start()->set_generation(1);
    for (const auto& m : roster_.members) {
      message.mutable_start()->add_peers(m.hello.data_address());
      message.mutable_start()->add_about(m.hello.about());
    }
    for (size_t i = 0; i < roster_.members.size(); ++i) {
      Member& m = roster_.members[i];
      message.mutable_start()->set_member(static_cast<int>(i));
      if (m.channel && !m.hello.brief()) sendTo(*m.channel, message);
      m.moved = monotonicSeconds();
    }
    training_ = true;
    for (const auto& channel : std::exchange(waiting_, {})) sendTo(*channel, roster_.here(true, false));
    wire::Event started;
    started.mutable_started();
    emit_(started);
  }

  // One turn of the loop: handles all messages that have come, sends heartbeats, then checks those of the members.
  void turn(Deadline deadline, const Interrupt* stop) {
    if (auto in = doorman_.next(deadline, stop)) {
      handle(*in);
      const Deadline moment = Deadline::after(patience::kMessages);
      while (!moment.passed() && (in = doorman_.next(Deadline::after(0), stop))) handle(*in);
    }
    const double now = monotonicSeconds();
    if (now - lastAlive_ >= patience::kBeat) {
      lastAlive_ = now;
      control::ToMember alive;
      alive.mutable_alive();
      roster_.tellAll(alive);
    }
    for (size_t w = 0; w < roster_.members.size(); ++w) checkLife(static_cast<int>(w), now);
  }

  void checkLife(int w, double now) const {
    const Member& m = roster_.members[static_cast<size_t>(w)];
    if (!m.watched() || m.finished) return;
    if (now - m.heard > options_.stepTimeout)
      throw Error(ErrorKind::kTimeout,
                  fmt::format("{} has been silent for {:.0f} s{}: stopped, overloaded or cut off. See its log; {}",
                              roster_.describe(w), now - m.heard, roster_.during(roster_.latestBeat()),
                              work_->remedyForLoss()));
    if (training_ && now - m.moved > patience::kHangTimeouts * options_.stepTimeout)
      throw Error(ErrorKind::kTimeout,
                  fmt::format("{} has not finished a batch for {:.0f} s{}; see its log", roster_.describe(w),
                              now - m.moved, roster_.during(m.beat.iteration())));
  }

  void query(const Doorman::Incoming& in) {
    if (in.message.query().wait() && !training_)
      waiting_.push_back(in.from);
    else
      sendTo(*in.from, roster_.here(training_, in.message.query().brief()));
  }

  void handle(const Doorman::Incoming& in) {
    if (in.call) return in.call();
    if (in.message.has_query()) return query(in);
    const int w = roster_.find(in.from);
    if (w < 0) {
      if (in.message.has_hello()) admit(in);
      if (in.message.report().has_note()) forward(in.message.report());
      return;
    }
    Member& m = roster_.members[static_cast<size_t>(w)];
    m.heard = monotonicSeconds();
    if (!in.lost.empty()) {
      m.channel.reset();
      if (m.hello.brief()) m.finished = true;
      if (m.finished) return;
      const int64_t step = presentStep();
      throw Error(ErrorKind::kPeer,
                  fmt::format("{} was lost{}: {} (the process ended or was killed). See the end of its log; {}",
                              roster_.describe(w), roster_.during(step), in.lost, work_->remedyForLoss()));
    }
    take(m, w, in.message);
  }

  void take(Member& m, int w, const control::ToCoordinator& message) {
    switch (message.what_case()) {
      case control::ToCoordinator::kReady:
        m.ready = true, m.moved = m.heard;
        m.digest = message.ready().state_digest(), m.records = message.ready().records();
        break;
      case control::ToCoordinator::kBeat:
        if (message.beat().passes() != m.beat.passes() || message.beat().waiting()) m.moved = m.heard;
        if (message.beat().preparing() > m.beat.preparing()) preparing(m);
        m.beat = message.beat();
        break;
      case control::ToCoordinator::kReport:
        forward(message.report());
        break;
      case control::ToCoordinator::kFailed:
        if (!m.finished) failed(w, message.failed());  // else its host has ended it; others may still publish
        break;
      case control::ToCoordinator::kPiece:
        m.moved = m.heard;
        if (work_->take(message.piece(), roster_.describe(w))) {
          control::ToMember kept;
          kept.mutable_kept();
          sendTo(*m.channel, kept);
        }
        break;
      case control::ToCoordinator::kFinished:
        m.finished = true;
        m.digest = message.finished().state_digest();
        m.beat.set_iteration(message.finished().iteration());
        break;
      default:
        break;
    }
  }

  // When a member reports a lost peer, that peer's own message or connection says more: waits for it.
  [[noreturn]] void failed(int w, const control::ToCoordinator::Failed& f) {
    if (f.kind() == name(ErrorKind::kPeer)) {
      const Deadline moment = Deadline::after(patience::kCause);
      while (auto in = doorman_.next(moment, nullptr))
        if (in->from != roster_.members[static_cast<size_t>(w)].channel) handle(*in);
    }
    throw Error(kindForAll(f.kind()),
                fmt::format("{} failed{}: {}", roster_.describe(w), roster_.during(f.iteration()), f.story()));
  }

  void admit(const Doorman::Incoming& in) {
    const auto& hello = in.message.hello();
    const size_t w = roster_.place(hello);
    const std::string refuse = roster_.refusal(hello, options_.jobDigest);
    if (!refuse.empty()) {
      control::ToMember message;
      message.mutable_abort()->set_story(refuse);
      message.mutable_abort()->set_kind(name(ErrorKind::kInvalid));
      sendTo(*in.from, message);
      LOG_WARNING("refused a {} from {}: {}", roster_.member(), hello.host(), refuse);
      return;
    }
    roster_.members[w].channel = in.from;
    roster_.members[w].hello = hello;
    roster_.members[w].heard = monotonicSeconds();
    roster_.members[w].ready = hello.brief();
    int have = 0;
    for (const auto& m : roster_.members) have += m.hello.has_version();
    wire::Event joined;
    auto* j = joined.mutable_joined();
    j->set_worker(static_cast<int>(w)), j->set_about(hello.about()), j->set_host(hello.host()), j->set_have(have),
        j->set_want(options_.members);
    j->set_task_seconds(hello.task_seconds()), j->set_unpack_seconds(hello.unpack_seconds());
    emit_(joined);
  }

  // Before the start the host is informed, not too often, how many members have their rows.
  void preparing(Member& m) {
    m.prepared = m.heard;
    if (training_ || m.heard - lastPreparing_ < patience::kPreparing) return;
    lastPreparing_ = m.heard;
    wire::Event event;
    event.mutable_preparing()->set_ready(roster_.count(&Member::ready)),
        event.mutable_preparing()->set_want(options_.members);
    emit_(event);
  }

  void forward(wire::Event event) {
    work_->complete(roster_, event);
    emit_(event);
  }

  void finish() {
    work_->checkEnd(roster_);
    control::ToMember bye;
    bye.mutable_bye();
    part(bye, patience::kGoodbye);
  }

  void abortAll(const Error& why) {
    control::ToMember message;
    message.mutable_abort()->set_story(why.what());
    message.mutable_abort()->set_kind(name(why.kind()));
    part(message, patience::kAbort);
  }

  // Says the last message, and waits for members to close their connections: closing from here could discard it before
  // it is read.
  void part(const control::ToMember& last, double seconds) {
    roster_.tellAll(last);
    size_t awaited = roster_.watched();
    const Deadline deadline = Deadline::after(seconds);
    while (awaited > 0) {
      const auto in = doorman_.next(deadline, nullptr);
      if (!in) break;
      if (!roster_.watches(in->from)) continue;
      if (in->message.has_report()) forwardAtLast(in->message.report());
      awaited -= !in->lost.empty();
    }
  }

  // What a member reported before it heard of the end, such as a snapshot that is published. The host may be gone.
  void forwardAtLast(const wire::Event& event) {
    try {
      forward(event);
    } catch (const Error&) {
      // the error that ends the run is the better one
    }
  }

  CoordinatorOptions options_;
  std::unique_ptr<Work> work_;
  Emit emit_;
  Roster roster_;
  double lastAlive_ = 0, lastPreparing_ = -1e9;
  bool training_ = false, asked_ = false;
  std::vector<std::shared_ptr<Channel>> waiting_;  // for all to be here
  Doorman doorman_;
};

Coordinator::Coordinator(const CoordinatorOptions& options, std::unique_ptr<Work> work, Emit emit)
    : state_(std::make_unique<State>(options, std::move(work), std::move(emit))) {}
Coordinator::~Coordinator() = default;
std::string Coordinator::address() const { return state_->address(); }
void Coordinator::run(const Interrupt* stop) { state_->run(stop); }
void Coordinator::send(const wire::Note& note) { state_->send(note); }
void Coordinator::askForEnd() { state_->askForEnd(); }

}  // namespace crema::cluster
