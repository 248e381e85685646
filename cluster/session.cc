#include "cluster/session.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "base/child.h"
#include "base/door.h"
#include "base/mapped_file.h"
#include "base/waiting.h"
#include "cluster/patience.h"
#include "cluster/pieces.h"

namespace crema::cluster {

ErrorKind kindForAll(const std::string& text) {
  const ErrorKind kind = kindNamed(text);
  const bool everywhere = kind == ErrorKind::kInvalid || kind == ErrorKind::kData || kind == ErrorKind::kInternal;
  return everywhere ? kind : ErrorKind::kPeer;
}

namespace {

constexpr size_t kPieceBytes = 1u << 20;

// Where the coordinator listened before, a refused connection is not waited for to be another: Spark may have better
// places.
Socket connectToCoordinator(const SessionOptions& o, const Interrupt& interrupt) {
  const Deadline deadline = Deadline::after(o.joinTimeout);
  const auto join = [&] {
    try {
      Socket s = connectThroughDoor(o.coordinator, o.secret, "control", deadline, &interrupt,
                                    o.coordinatorListens ? Deadline::after(patience::kGone) : deadline);
      s.setPeer("the coordinator at " + o.coordinator);
      return s;
    } catch (const Unreachable& e) {
      if (!o.coordinatorListens) throw;
      throw Error(ErrorKind::kPeer,
                  fmt::format("{}, where the coordinator listened before {} was started; is a firewall "
                              "between the two machines, or has the driver ended? See its log",
                              e.message(), o.member));
    }
  };
  return inside([&] { return fmt::format("while joining the coordinator at {}", o.coordinator); }, join);
}

}  // namespace

Session::Session(const SessionOptions& options, const control::ToCoordinator::Hello& hello, Interrupt& interrupt,
                 const HostActivity* host)
    : channel_(connectToCoordinator(options, interrupt)),
      over_(fmt::format("the run was over before attempt {} of {} could join it, or was needed", hello.attempt(),
                        options.member)),
      timeout_(options.stepTimeout),
      noted_(options.noted),
      interrupt_(interrupt),
      host_(host) {
  control::ToCoordinator message;
  *message.mutable_hello() = hello;
  channel_.send(message, Deadline::after(timeout_), &interrupt_);
  try {
    listener_ = std::thread([this] { listen(); });
    beater_ = std::thread([this] { beat(); });
  } catch (const std::system_error& e) {
    end();
    ioError("cannot start a thread for messages of the coordinator: {}; {}", e.code().message(),
            startRemedy(e.code().value()));
  }
}

Session::~Session() { end(); }

void Session::end() {
  for (Interrupt* i : {&closing_, &lastWords_}) i->raise(Error(ErrorKind::kStopped, "the session has ended"));
  changed_.notify_all();
  if (listener_.joinable()) listener_.join();
  if (beater_.joinable()) beater_.join();
}

// The coordinator sends a heartbeat every second; a timeout without any message means that it is gone.
void Session::listen() {
  try {
    for (;;) {
      control::ToMember message;
      channel_.receive(&message, Deadline::after(timeout_), &closing_);
      if (message.has_note() && noted_) noted_(message.note());
      const MutexLock lock(mutex_);
      take(message);
      changed_.notify_all();
    }
  } catch (const std::exception& e) {
    const MutexLock lock(mutex_);
    if (!closing_.raised() && !bye_ && !error_) {
      error_ = Error(ErrorKind::kPeer,
                     fmt::format("the coordinator is gone: {}; the driver ended, was killed or is cut off. See its log",
                                 e.what()));
      interrupt_.raise(*error_);
    }
    changed_.notify_all();
  }
}

void Session::take(const control::ToMember& message) {
  if (message.has_start()) start_ = message.start();
  if (message.alive().advancing()) someoneAdvanced = monotonicSeconds();
  if (message.has_kept()) kept_ = message.kept();
  if (message.has_bye()) bye_ = true;
  if (message.has_regroup()) {
    regroup_ = message.regroup();
    (regroup_.at_border() ? nextAtBorder_ : next_) = regroup_.generation();
    if (left_ && leaving()) left_->raise(Error(ErrorKind::kPeer, regroup_.why()));
  }
  if (message.has_place()) {
    place_ = message.place().number();
    interrupt_.raise(Error(ErrorKind::kStopped, "this process is to be another member"));
  }
  if (message.has_abort()) {
    error_ = Error(kindNamed(message.abort().kind()), message.abort().story());
    interrupt_.raise(*error_);
  }
}

void Session::beat() {
  Deadline next = Deadline::after(patience::kBeat);
  while (!waitFor([this] { return closing_.raised(); }, std::min(patience::kLook, next.left()))) {
    askForEnd();
    if (!next.passed()) continue;
    next = Deadline::after(patience::kBeat);
    try {
      sendBeat();
    } catch (const std::exception&) {
      return;  // listen() reports the cause
    }
  }
}

void Session::sendBeat() {
  control::ToCoordinator message;
  auto* b = message.mutable_beat();
  b->set_iteration(iteration), b->set_passes(passes + (host_ ? host_->arrived.load() : 0)), b->set_waiting(waiting),
      b->set_compute_seconds(computeSeconds), b->set_preparing(host_ ? host_->preparing.load() : 0),
      b->set_transferred(transferred);
  {
    const MutexLock lock(mutex_);
    *b->mutable_spent() = spent_;
  }
  channel_.send(message, Deadline::after(timeout_), &lastWords_);
}

void Session::askForEnd() {
  const MutexLock lock(mutex_);
  if (left_ && ends_ && ends_()) left_->raise(Error(ErrorKind::kStopped, "this member was asked to end"));
}

bool Session::waitFor(const std::function<bool()>& condition, double seconds) {
  MutexLock lock(mutex_);
  return waitUntil(changed_, lock, Deadline::after(seconds), nullptr, condition);
}

void Session::ready(const std::string& stateDigest, const std::string& records) {
  control::ToCoordinator message;
  message.mutable_ready()->set_state_digest(stateDigest);
  message.mutable_ready()->set_records(records);
  try {
    channel_.send(message, Deadline::after(timeout_), &interrupt_);
  } catch (const Error&) {
    // Said while the member was preparing, by a coordinator that has gone since; listen() may be a moment behind.
    (void)waitFor([this]() CREMA_REQUIRES(mutex_) { return bye_ || error_; }, patience::kGone);
    const MutexLock lock(mutex_);
    if (bye_) throw RunOver(over_);
    throw;
  }
}

// Waits until `said` holds after a message of the coordinator, or the run is over.
void Session::waitForMessage(const std::function<bool()>& said, const std::function<void()>& meanwhile) {
  while (!waitFor([&] { return said() || interrupt_.raised(); }, patience::kLook))
    if (meanwhile) meanwhile();
}

control::ToMember::Start Session::waitForStart(const std::function<void()>& meanwhile) {
  waiting = true;
  waitForMessage([this]() CREMA_REQUIRES(mutex_) { return start_.has_value() || bye_; }, meanwhile);
  waiting = false;
  interrupt_.check();
  const MutexLock lock(mutex_);
  if (!start_) throw RunOver(over_);
  const control::ToMember::Start start = *std::exchange(start_, std::nullopt);
  generation_ = start.generation();
  return start;
}

void Session::watch(Interrupt* left, std::function<bool()> ends) {
  const MutexLock lock(mutex_);
  left_ = left, ends_ = std::move(ends);
  if (left_ && leaving()) left_->raise(Error(ErrorKind::kPeer, regroup_.why()));
}

bool Session::leaving() const { return next_ > generation_; }
bool Session::pauseAsked() const { return nextAtBorder_ > generation_; }

void Session::paused(int64_t at, const Unreached& others, const std::string& story, int64_t taken) {
  control::ToCoordinator message;
  auto* p = message.mutable_paused();
  p->set_generation(generation_), p->set_iteration(at), p->set_story(story);
  for (const int m : others.members) p->add_unreached(m);
  p->set_ended(others.ended), p->set_taken(taken);
  channel_.send(message, Deadline::after(timeout_), &interrupt_);
}

void Session::report(const wire::Event& event) {
  control::ToCoordinator message;
  *message.mutable_report() = event;
  channel_.send(message, Deadline::after(timeout_), &interrupt_);
}

void Session::spent(const control::ToCoordinator::Spent& spent) {
  const MutexLock lock(mutex_);
  spent_ = spent;
}

void Session::failed(const Error& error) {
  control::ToCoordinator message;
  message.mutable_failed()->set_story(error.what());
  message.mutable_failed()->set_kind(name(error.kind()));
  message.mutable_failed()->set_iteration(iteration);
  // Without the interrupt, which may be what this reports. A heartbeat that waits for room must not hold it up.
  lastWords_.raise(Error(ErrorKind::kStopped, "this member has failed"));
  try {
    channel_.send(message, Deadline::after(patience::kFailed));
  } catch (const std::exception&) {
    // the coordinator is gone as well; the caller still has the error
  }
}

void Session::waitForKept(const std::function<bool()>& said) {
  waiting = true;
  waitForMessage(said);
  waiting = false;
  interrupt_.check();
}

// Sends no faster than the coordinator writes, whose memory would hold the rest.
void Session::sendModel(const std::string& path) {
  const MappedFile file(path);
  const std::string_view all = file.bytes();
  size_t at = 0;
  {
    const MutexLock lock(mutex_);
    kept_.Clear();
  }
  do {
    control::ToCoordinator message;
    message.mutable_piece()->set_first(at == 0);
    const std::string_view piece = all.substr(at, kPieceBytes);
    message.mutable_piece()->set_data(piece.data(), piece.size());
    at += piece.size();
    if (at == all.size()) message.mutable_piece()->set_size(all.size());
    interrupt_.check();
    channel_.send(message, Deadline::after(timeout_), &interrupt_);
    file.touched(piece.size());
    ++passes;
    waitForKept([&]() CREMA_REQUIRES(mutex_) { return at - kept_.bytes() < Pieces::kAhead; });
  } while (at < all.size());
  waitForKept([this]() CREMA_REQUIRES(mutex_) { return kept_.whole(); });
}

void Session::finished(int64_t last, const std::string& digest) {
  control::ToCoordinator message;
  message.mutable_finished()->set_iteration(last);
  message.mutable_finished()->set_state_digest(digest);
  channel_.send(message, Deadline::after(timeout_), &interrupt_);
}

bool Session::waitForBye() {
  waitForMessage([this]() CREMA_REQUIRES(mutex_) { return bye_ || leaving(); });
  const MutexLock lock(mutex_);
  if (!bye_) interrupt_.check();
  return bye_;
}

std::optional<Error> Session::coordinatorsError(double seconds) {
  waitFor([this]() CREMA_REQUIRES(mutex_) { return error_ || bye_; }, seconds);
  const MutexLock lock(mutex_);
  return error_;
}

void Session::checkNeeded() {
  const MutexLock lock(mutex_);
  if (bye_ && generation_ == 0) throw RunOver(over_);
}

}  // namespace crema::cluster
