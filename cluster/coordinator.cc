// length: one object, the run; what has a name of its own is in membership.h, roster.h, reserve.h, losses.h, reports.h, doorman.h and parting.h.
#include "cluster/coordinator.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/log.h"
#include "cluster/doorman.h"
#include "cluster/losses.h"
#include "cluster/parting.h"
#include "cluster/patience.h"
#include "cluster/pieces.h"
#include "cluster/reports.h"
#include "cluster/reserve.h"
#include "cluster/roster.h"
#include "cluster/session.h"

namespace crema::cluster {

class Coordinator::State {
 public:
  State(const CoordinatorOptions& options, std::unique_ptr<Work> work, Emit emit)
      : options_(options),
        work_(std::move(work)),
        reports_(std::move(emit)),
        roster_(options.members, work_->naming()),
        membership_({options.members, options.least, options.replacement, work_->sharesMove(), options.first}),
        doorman_(options.host, options.port, options.secret, options.listener),
        pieces_([work = work_](const auto& piece, const std::string& sender) { return work->take(piece, sender); },
                [this](std::function<void()> call) { doorman_.post(std::move(call)); }) {}
  std::string address() const { return doorman_.address(); }
  void send(const wire::Note& note) {
    doorman_.post([this, note] { sendAll(note); });
  }
  void askForEnd() {
    doorman_.post([this] { asked_ = true; });
  }

  void run(const Interrupt* stop) {
    reports_.listening(address());
    try {
      waitUntil_ = Deadline::after(options_.joinTimeout);
      while (!over()) {
        turn(stop);
        divide();
        act();
        callLast();
      }
      work_->checkEnd(roster_);
      control::ToMember bye;
      bye.mutable_bye();
      end(bye, patience::kGoodbye);
    } catch (Error& e) {
      control::ToMember message;
      message.mutable_abort()->set_story(e.what());
      message.mutable_abort()->set_kind(name(e.kind()));
      end(message, patience::kAbort);
      throw;
    }
  }
  void answerLate(const Interrupt& stop) {
    control::ToMember bye;
    bye.mutable_bye();
    for (const Deadline deadline = Deadline::after(patience::kLate); !deadline.passed() && !stop.raised();) {
      const auto in = doorman_.next(Deadline::earlier(deadline, Deadline::after(patience::kTurn)), nullptr);
      if (in && in->message.has_hello()) sendTo(*in->from, bye);
    }
  }

 private:
  using Phase = Membership::Phase;

  bool recovers() const { return options_.replacement != Replacement::kFail; }
  bool gathering() const { return membership_.phase() == Phase::kGathering; }
  bool survivesLoss() const { return recovers() || (options_.placesReturn && gathering()); }
  bool over() const { return work_->over(roster_, asked_, done_); }

  void end(const control::ToMember& last, double seconds) {
    reserve_.tellAll(last);
    part(roster_, doorman_, last, {seconds, options_.stepTimeout}, [this](auto& event) { forward(event); });
  }

  void sendAll(const wire::Note& note) const {
    control::ToMember message;
    *message.mutable_note() = note;
    roster_.tellAll(message);
  }
  void callLast() {
    if (!asked_ || calledLast_) return;
    const auto note = work_->lastCall(roster_);
    calledLast_ = note.has_value();
    if (note) sendAll(*note);
  }

  // One turn of the loop: handles all messages that have come, sends heartbeats, then checks those of the members.
  void turn(const Interrupt* stop) {
    const Deadline soon = Deadline::after(patience::kTurn);
    const bool waits = !waitUntil_.passed() && (gathering() || membership_.awaitsReplacement());
    if (auto in = doorman_.next(waits ? Deadline::earlier(waitUntil_, soon) : soon, stop)) {
      handle(*in);
      const Deadline moment = Deadline::after(patience::kMessages);
      while (!moment.passed() && (in = doorman_.next(Deadline::after(0), stop))) handle(*in);
    }
    const double now = monotonicSeconds();
    if (now - lastAlive_ >= patience::kBeat) {
      lastAlive_ = now;
      control::ToMember alive;
      alive.mutable_alive()->set_advancing(advancing(now));
      roster_.tellAll(alive);
      reserve_.tellAll(alive);
    }
    reserve_.fill(roster_, now);
    for (size_t w = 0; w < roster_.members.size(); ++w) checkLife(static_cast<int>(w), now);
    if (const double s = pieces_.seconds(now); s > patience::kPublicationTimeouts * options_.stepTimeout)
      throw Error(ErrorKind::kIo, work_->storyOfDisk(s));
  }

  // Says what the state of the members asks for.
  void act() {
    for (;;) {
      const bool waited = waitUntil_.passed();
      switch (membership_.next(waited)) {
        case Membership::Say::kNothing:
          if (gathering() && waited && roster_.late(monotonicSeconds() - options_.joinTimeout)) throw missing();
          return;
        case Membership::Say::kRegroup:
          regroup(false);
          break;
        case Membership::Say::kBorder:
          regroup(true);
          break;
        case Membership::Say::kStart:
          start();
          break;
        case Membership::Say::kGiveUp:
          lose(membership_.evicted(),
               fmt::format("{} and others cannot reach each other, three times in a row; is a firewall between the "
                           "machines, or {} not an address of this one?",
                           roster_.describe(membership_.evicted()),
                           roster_.members[static_cast<size_t>(membership_.evicted())].hello.data_address()));
          break;
        case Membership::Say::kTooFew:
          throw tooFew();
        case Membership::Say::kOver:
          done_ = true;
          return;
      }
    }
  }

  Error missing() const {
    const bool fewer = options_.first > 0 && work_->sharesMove();
    return roster_.tooFew(static_cast<size_t>(fewer ? options_.first : options_.members), options_.joinTimeout,
                          work_->remedyForMissing());
  }

  Error tooFew() const {
    if (!losses_.last()) return missing();
    int here = 0, withState = 0;
    for (int w = 0; w < options_.members; ++w) {
      withState +=
          membership_.seat(w) == Membership::Seat::kPaused && membership_.iteration(w) != Membership::kNewcomer;
      here += membership_.seat(w) == Membership::Seat::kPaused || membership_.seat(w) == Membership::Seat::kReady;
    }
    const Error& cause = losses_.cause(monotonicSeconds());
    if (!recovers() || withState == 0) return cause;  // newcomers alone have nothing to go on from
    return {cause.kind(), fmt::format("{} {}(s) are left, and {}; none came within {:.0f} s. The last loss: {}", here,
                                      roster_.member(),
                                      work_->sharesMove() ? fmt::format("{} are needed", std::max(options_.least, 1))
                                                          : "each must be replaced, as only it has its rows",
                                      options_.replacementTimeout, cause.what())};
  }

  void divide() {
    if (recovers() && membership_.phase() == Phase::kRunning && work_->wantsOtherShares(roster_, monotonicSeconds()))
      membership_.divideAnew();
  }

  // Behind a step all compute until then: the pause begins with the first that has left.
  void regroup(bool atBorder) {
    if (!atBorder) reports_.paused(monotonicSeconds());
    waitUntil_ = Deadline::after(options_.replacementTimeout);
    control::ToMember message;
    message.mutable_regroup()->set_generation(membership_.generation());
    message.mutable_regroup()->set_at_border(atBorder);
    if (losses_.last()) message.mutable_regroup()->set_why(losses_.last()->message());
    for (const int w : membership_.members()) {
      roster_.tell(w, message);
      if (atBorder) continue;
      // It computes again, and is watched as before. Who had finished and is gone leaves its place to another one.
      Member& m = roster_.members[static_cast<size_t>(w)];
      if (m.watched()) m.finished = false, m.moved = monotonicSeconds();
      if (membership_.seat(w) == Membership::Seat::kEmpty) m = Member();
    }
  }

  void start() {
    if (membership_.generation() == 1) work_->checkStart(roster_);
    const std::vector<int>& members = membership_.members();
    control::ToMember message;
    auto* start = message.mutable_start();
    start->set_generation(membership_.generation());
    int64_t snapshot = reports_.lastSnapshot();
    std::vector<int> came;
    for (const int w : members) {
      const Member& m = roster_.members[static_cast<size_t>(w)];
      start->add_peers(m.hello.data_address());
      start->add_about(m.hello.about());
      start->add_number(w);
      start->add_iteration(membership_.iteration(w));
      if (membership_.iteration(w) == Membership::kNewcomer) came.push_back(w);
      snapshot = std::max(snapshot, m.taken);
    }
    start->set_snapshot(snapshot);
    Work::Division division = work_->begin(roster_, members);
    for (const int end : division.ends) start->add_share_end(end);
    reports_.begins(std::move(came), std::move(division.why));
    for (size_t i = 0; i < members.size(); ++i) {
      Member& m = roster_.members[static_cast<size_t>(members[i])];
      start->set_member(static_cast<int>(i));
      m.finished = m.hello.brief() && !m.channel;
      if (m.finished) membership_.finished(members[i]);
      roster_.tell(members[i], message);
      m.moved = lastPass_ = monotonicSeconds();
    }
    started();
  }

  void started() {
    if (membership_.generation() > 1) return;
    for (const auto& channel : std::exchange(waiting_, {})) sendTo(*channel, roster_.here(true, false));
    reports_.started();
  }

  void wentOn(int64_t iteration) {
    if (membership_.phase() == Phase::kRunning)
      reports_.wentOn(membership_.generation(), membership_.members().size(), iteration, monotonicSeconds());
  }

  bool runs(int w) const { return membership_.seat(w) == Membership::Seat::kRunning; }

  // By the heartbeats since the last call: whether others that wait may wait for one that is well, or slow, or behind a slow
  // link, of which they themselves see nothing. Not one that has stopped in the middle of a batch.
  bool advancing(double now) {
    const auto computes = [this, now](int w) {
      const Member& m = roster_.members[static_cast<size_t>(w)];
      return runs(w) && !m.beat.waiting() && now - m.heard <= patience::kFresh;
    };
    return std::exchange(transferred_, false) ||
           std::any_of(membership_.members().begin(), membership_.members().end(), computes);
  }

  void checkLife(int w, double now) {
    const Member& m = roster_.members[static_cast<size_t>(w)];
    if (!m.watched() || m.finished) return;
    if (now - m.heard > options_.stepTimeout)
      lose(w,
           fmt::format("{} has been silent for {:.0f} s{}: stopped, overloaded or cut off. See its log",
                       roster_.describe(w), now - m.heard, roster_.during(roster_.latestStep())),
           ErrorKind::kTimeout);
    else if (!gathering() && now - m.moved > patience::kHangTimeouts * options_.stepTimeout)
      lose(
          w,
          fmt::format("{} has not finished a batch for {:.0f} s{}; see its log. Where a batch takes so long, raise the "
                      "step timeout, {:.0f} of which are over (-step_timeout; on Spark spark.crema.stepTimeout)",
                      roster_.describe(w), now - m.moved, roster_.during(m.beat.iteration()), patience::kHangTimeouts),
          ErrorKind::kTimeout, false);
  }

  // What happened to member w, in a sentence without its end. Throws where the run ends with it.
  // replaced: another process has taken its place already.
  void lose(int w, const std::string& story, ErrorKind kind = ErrorKind::kPeer, bool remedy = true,
            bool replaced = false) {
    const bool needed = !membership_.spares(w), pauses = needed && !gathering();
    if (needed) {
      losses_.lost(Error(kind == ErrorKind::kStopped ? ErrorKind::kPeer : kind,
                         remedy ? fmt::format("{}; {}", story, work_->remedyForLoss()) : story));
      if (!survivesLoss()) throw *losses_.last();
    }
    LOG_WARNING("{}", story);
    const double now = monotonicSeconds();
    if (pauses && kind == ErrorKind::kTimeout) reports_.stood(lastPass_, now);
    if (pauses) reports_.paused(now);
    control::ToMember goodbye;
    goodbye.mutable_abort()->set_kind(name(ErrorKind::kPeer));
    goodbye.mutable_abort()->set_story(
        fmt::format("this {} was given up, and the run goes on without it: {}", roster_.member(), story));
    roster_.tell(w, goodbye);
    const int attempt = roster_.members[static_cast<size_t>(w)].hello.attempt();
    roster_.members[static_cast<size_t>(w)] = Member();
    membership_.left(w);
    if (pauses) waitUntil_ = Deadline::after(options_.replacementTimeout);
    reports_.lost(w, attempt, story, replaced, !gathering() && membership_.nobody(), kind);
  }

  void query(const Doorman::Incoming& in) {
    if (in.message.query().wait() && gathering())
      waiting_.push_back(in.from);
    else
      sendTo(*in.from, roster_.here(!gathering(), in.message.query().brief()));
  }

  void handle(const Doorman::Incoming& in) {
    if (in.call) return in.call();
    if (in.message.has_query()) return query(in);
    const int w = roster_.find(in.from);
    if (w < 0) {
      if (!in.lost.empty()) reserve_.gone(in.from);
      if (in.message.has_hello()) admit(in);
      if (in.message.report().has_note()) forward(in.message.report());
      return;
    }
    Member& m = roster_.members[static_cast<size_t>(w)];
    m.heard = monotonicSeconds();
    if (!in.lost.empty()) return disconnected(w, in.lost);
    take(m, w, in.message);
  }

  void disconnected(int w, const std::string& how) {
    Member& m = roster_.members[static_cast<size_t>(w)];
    const std::string who = roster_.describe(w);
    m.channel.reset();
    if (m.hello.brief()) {
      m.finished = true;
      if (!gathering()) membership_.finished(w);
    }
    if (m.finished) {
      if (!gathering()) membership_.left(w);
      return;
    }
    const bool ends = !survivesLoss() && !membership_.spares(w);
    const int64_t step = ends ? presentStep(roster_, doorman_, [this](auto& e) { forward(e); }) : roster_.latestStep();
    lose(w, fmt::format("{} was lost{}: {} (the process ended or was killed). See the end of its log, on Spark its "
                        "executor's stderr",
                        who, roster_.during(step), how));
  }

  void take(Member& m, int w, const control::ToCoordinator& message) {
    switch (message.what_case()) {
      case control::ToCoordinator::kReady:
        return ready(m, w, message.ready());
      case control::ToCoordinator::kBeat:
        if (message.beat().passes() != m.beat.passes()) lastPass_ = m.heard;
        if (message.beat().passes() != m.beat.passes() || message.beat().waiting()) m.moved = m.heard;
        if (message.beat().preparing() > m.beat.preparing()) preparing(m);
        if (runs(w) && message.beat().transferred() != m.beat.transferred()) transferred_ = true;
        m.beat = message.beat();
        break;
      case control::ToCoordinator::kReport:
        forward(message.report());
        break;
      case control::ToCoordinator::kPaused:
        paused(w, message.paused());
        break;
      case control::ToCoordinator::kFailed:
        if (!m.finished) failed(w, message.failed());  // else its host has ended it; others may still publish
        break;
      case control::ToCoordinator::kPiece:
        m.moved = m.heard;
        pieces_.add(m.channel, message.piece(), roster_.describe(w));
        break;
      case control::ToCoordinator::kFinished:
        if (!membership_.finished(w)) break;
        m.finished = true;
        m.digest = message.finished().state_digest();
        m.beat.set_iteration(message.finished().iteration());
        wentOn(message.finished().iteration());
        break;
      default:
        break;
    }
  }

  void ready(Member& m, int w, const control::ToCoordinator::Ready& said) {
    if (m.ready) return;  // it has said so before
    m.ready = true, m.moved = m.heard;
    m.digest = said.state_digest(), m.records = said.records();
    const std::string why = gathering() ? "" : work_->refusal(roster_, w);
    if (why.empty()) return membership_.ready(w);
    refuse(m.channel, m.hello, why);
    membership_.left(w);
    m = Member();
  }

  // Also of a member that cannot reach others.
  void paused(int w, const control::ToCoordinator::Paused& p) {
    Member& m = roster_.members[static_cast<size_t>(w)];
    const Unreached others{{p.unreached().begin(), p.unreached().end()}, p.ended()};
    if (!membership_.paused(w, p.generation(), p.iteration(), others)) return;
    m.moved = m.heard, m.finished = false, m.taken = p.taken();
    // From when nobody computes any more: who comes in the place of a lost one may have been here before.
    if (losses_.last()) waitUntil_ = Deadline::after(options_.replacementTimeout);
    if (!p.story().empty() && !recovers()) {
      control::ToCoordinator::Failed f;
      f.set_story(p.story()), f.set_kind(name(ErrorKind::kPeer)), f.set_iteration(p.iteration());
      failed(w, f);
    }
    if (!p.story().empty()) LOG_WARNING("{} has stopped: {}", roster_.describe(w), p.story());
    reports_.paused(monotonicSeconds());
  }

  // When a member reports a lost peer, that peer's own message or connection says more: waits for it.
  void failed(int w, const control::ToCoordinator::Failed& f) {
    if (f.kind() == name(ErrorKind::kPeer) && !recovers()) {
      const Deadline moment = Deadline::after(patience::kCause);
      while (auto in = doorman_.next(moment, nullptr))
        if (in->from != roster_.members[static_cast<size_t>(w)].channel) handle(*in);
    }
    membership_.failed(w);
    const bool others = recovers() && !gathering() && membership_.members().size() > 1;
    const bool itsMachine = others && !membership_.spares(w) && f.kind() == name(ErrorKind::kIo);
    const double now = monotonicSeconds();
    const int time = itsMachine ? losses_.ofItsMachine(w, now) : 1;
    const std::string story = fmt::format("{} failed{}{}: {}", roster_.describe(w), roster_.during(f.iteration()),
                                          Losses::often(time), f.story());
    const bool told = f.kind() == name(ErrorKind::kStopped);
    if (membership_.spares(w) || (survivesLoss() && told))
      return lose(w, story, told ? ErrorKind::kStopped : ErrorKind::kPeer);
    if (itsMachine && time <= patience::kFailures) {
      losses_.follow(Error(ErrorKind::kIo, story), now + options_.replacementTimeout);
      return lose(w, story);
    }
    throw Error(kindForAll(f.kind()), story);
  }

  void refuse(const std::shared_ptr<Channel>& who, const control::ToCoordinator::Hello& hello, const std::string& why,
              ErrorKind kind = ErrorKind::kInvalid) {
    control::ToMember message;
    message.mutable_abort()->set_story(why);
    message.mutable_abort()->set_kind(name(kind));
    sendTo(*who, message);
    LOG_WARNING("refused a {} from {}: {}", roster_.member(), hello.host(), why);
  }

  void admit(const Doorman::Incoming& in) {
    const auto& hello = in.message.hello();
    const size_t w = roster_.place(hello);
    std::string refusal = roster_.refusal(hello, options_.jobDigest);
    if (refusal.empty()) {
      const Member& there = roster_.members[w];
      if (recovers() && (there.finished || Reserve::takes(hello, there))) return reserve_.add(in.from);
      // A later attempt of the same task: the earlier one is gone, although its connection has not ended yet.
      if (survivesLoss() && there.channel && !there.finished && !Reserve::takes(hello, there) &&
          hello.attempt() > there.hello.attempt())
        lose(static_cast<int>(w), roster_.describe(static_cast<int>(w)) + " was started again", ErrorKind::kPeer, true,
             true);
      // Which may end: another attempt of that task is no mistake of the job's.
      if (const std::string why = roster_.occupied(w); !why.empty())
        return refuse(in.from, hello, why, ErrorKind::kPeer);
    }
    if (!refusal.empty()) return refuse(in.from, hello, refusal);
    Member& m = roster_.members[w];
    m.channel = in.from;
    m.hello = hello;
    m.heard = m.moved = monotonicSeconds();
    m.ready = hello.brief();
    membership_.joined(static_cast<int>(w));
    if (hello.brief()) membership_.ready(static_cast<int>(w));
    reports_.joined(static_cast<int>(w), roster_);
  }

  void preparing(Member& m) {
    m.prepared = m.heard;
    // A replacement is not late while its rows are on their way.
    if (membership_.awaitsReplacement()) waitUntil_ = Deadline::after(options_.replacementTimeout);
    if (gathering()) reports_.preparing(roster_, m.heard);
  }

  void forward(const wire::Event& event) {
    if (event.has_progress()) wentOn(roster_.shown = event.progress().iteration());
    reports_.forward(event, roster_, *work_);
  }

  CoordinatorOptions options_;
  const std::shared_ptr<Work> work_;  // shared with the thread of pieces_
  Reports reports_;
  Roster roster_;
  Membership membership_;
  Reserve reserve_;
  Losses losses_;
  Deadline waitUntil_ = Deadline::after(0);  // for all members, or for replacements
  double lastAlive_ = 0, lastPass_ = 0;      // lastPass_: of any member, as its heartbeat said
  bool done_ = false, asked_ = false, calledLast_ = false;
  bool transferred_ = false;                       // bytes between members, since the last heartbeat to them
  std::vector<std::shared_ptr<Channel>> waiting_;  // for all to be here
  Doorman doorman_;
  Pieces pieces_;  // behind doorman_, to which it posts
};

Coordinator::Coordinator(const CoordinatorOptions& options, std::unique_ptr<Work> work, Emit emit)
    : state_(std::make_unique<State>(options, std::move(work), std::move(emit))) {}
Coordinator::~Coordinator() = default;
std::string Coordinator::address() const { return state_->address(); }
void Coordinator::run(const Interrupt* stop) { state_->run(stop); }
void Coordinator::answerLate(const Interrupt& stop) { state_->answerLate(stop); }
void Coordinator::send(const wire::Note& note) { state_->send(note); }
void Coordinator::askForEnd() { state_->askForEnd(); }

}  // namespace crema::cluster
