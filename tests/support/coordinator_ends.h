// The two ends of the control connection for tests: a member whose every message the test sends itself, and a
// coordinator whose result and events are kept. Real sockets on loopback, in one process.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "base/door.h"
#include "base/mutex.h"
#include "cluster/channel.h"
#include "cluster/coordinator.h"
#include "control.pb.h"
#include "support/hand_clock.h"

namespace crema::cluster::test {

constexpr char kToken[] = "the token of this cluster";
constexpr char kJobDigest[] = "digest of the job";

inline Socket connectWithToken(const std::string& address, const std::string& token = kToken) {
  const Deadline deadline = Deadline::after(1e6);
  return connectThroughDoor(address, token, "control", deadline, nullptr, deadline);
}

class ScriptedMember {
 public:
  ScriptedMember(const std::string& address, int member) {
    channel_ = std::make_unique<Channel>(connectWithToken(address));
    hello.set_version(CREMA_VERSION), hello.set_member(member), hello.set_job_digest(kJobDigest);
    hello.set_host(std::string("h") + std::to_string(member)), hello.set_pid(100 + member);
    hello.set_data_address("127.0.0.1:" + std::to_string(7000 + member));
  }
  void say(const control::ToCoordinator& m) { channel_->send(m, Deadline::after(1e6)); }
  void sayHello() {
    control::ToCoordinator m;
    *m.mutable_hello() = hello;
    say(m);
  }
  void sayReady(const std::string& digest = "weights", const std::string& records = "100 records") {
    control::ToCoordinator m;
    m.mutable_ready()->set_state_digest(digest), m.mutable_ready()->set_records(records);
    say(m);
  }
  void sayBeat(int64_t iteration, int64_t passes, bool waiting = false, double seconds = 0, int64_t preparing = 0,
               int64_t transferred = 0) {
    control::ToCoordinator m;
    auto* b = m.mutable_beat();
    b->set_iteration(iteration), b->set_passes(passes), b->set_waiting(waiting);
    b->set_compute_seconds(seconds), b->set_preparing(preparing), b->set_transferred(transferred);
    say(m);
  }
  void sayProgress(int64_t iteration) {
    control::ToCoordinator m;
    m.mutable_report()->mutable_progress()->set_iteration(iteration);
    say(m);
  }
  void sayPiece(const std::string& data, int64_t size = 0) {  // size: of the whole, with the last piece
    control::ToCoordinator m;
    m.mutable_piece()->set_data(data);
    if (size) m.mutable_piece()->set_size(static_cast<uint64_t>(size));
    say(m);
  }
  void sayFailed(const std::string& message, const std::string& kind, int64_t iteration) {
    control::ToCoordinator m;
    m.mutable_failed()->set_story(message), m.mutable_failed()->set_kind(kind),
        m.mutable_failed()->set_iteration(iteration);
    say(m);
  }
  void sayFinished(const std::string& digest) {
    control::ToCoordinator m;
    m.mutable_finished()->set_iteration(10), m.mutable_finished()->set_state_digest(digest);
    say(m);
  }
  void sayPaused(uint32_t generation, int64_t iteration, const Unreached& others = {}, int64_t taken = -1) {
    control::ToCoordinator m;
    m.mutable_paused()->set_taken(taken);
    m.mutable_paused()->set_generation(generation), m.mutable_paused()->set_iteration(iteration);
    for (const int o : others.members) m.mutable_paused()->add_unreached(o);
    m.mutable_paused()->set_ended(others.ended);
    if (!others.members.empty()) m.mutable_paused()->set_story("the others are out of reach");
    say(m);
  }
  bool spokenTo() const {  // there is a message to read, or the end of the connection
    return channel_->readable();
  }
  // The next message; kTimeout when none comes soon in real time.
  control::ToMember hearAnything() {
    if (!crema::test::soon([this] { return spokenTo(); })) throw Error(ErrorKind::kTimeout, "nothing was said");
    control::ToMember m;
    channel_->receive(&m, Deadline::after(1e6), nullptr);
    return m;
  }
  control::ToMember hear() {  // the next message that is no heartbeat
    for (;;)
      if (const auto m = hearAnything(); !m.has_alive()) return m;
  }
  std::string hearAbort() {
    const control::ToMember m = hear();
    return m.has_abort() ? m.abort().kind() + ": " + m.abort().story() : "no abort";
  }
  void hangUp() { channel_.reset(); }

  control::ToCoordinator::Hello hello;

 private:
  std::unique_ptr<Channel> channel_;
};

class RunningCoordinator {
 public:
  RunningCoordinator(const CoordinatorOptions& options, std::unique_ptr<Work> work, const Interrupt* stop = nullptr)
      : coordinator_(options, std::move(work), [this](const wire::Event& e) { keep(e); }),
        thread_([this, stop] { run(stop); }) {}
  // A run that a failing test has abandoned ends by its timeouts.
  ~RunningCoordinator() {
    crema::test::soon([this] { return over(); }, [] { Clock::hold(Clock::now() + std::chrono::seconds(5)); });
    thread_.join();
  }
  std::string address() const { return coordinator_.address(); }
  Coordinator& coordinator() { return coordinator_; }
  bool over() const { return over_; }
  const std::optional<Error>& error() const { return error_; }  // once it is over
  std::vector<wire::Event> events() {
    const MutexLock lock(mutex_);
    return events_;
  }
  // How many events satisfy `wanted`.
  template <class Wanted>
  size_t count(Wanted wanted) {
    const auto all = events();
    return static_cast<size_t>(std::count_if(all.begin(), all.end(), wanted));
  }
  bool saw(const std::function<bool(const wire::Event&)>& wanted) {
    return crema::test::soon([&] { return count(wanted) > 0; });
  }

 private:
  void keep(const wire::Event& e) {
    const MutexLock lock(mutex_);
    events_.push_back(e);
  }
  void run(const Interrupt* stop) {
    try {
      coordinator_.run(stop);
    } catch (const Error& e) {
      error_ = e;
    }
    over_ = true;
  }

  Mutex mutex_;
  std::vector<wire::Event> events_ CREMA_GUARDED_BY(mutex_);
  std::optional<Error> error_;
  std::atomic<bool> over_{false};
  Coordinator coordinator_;
  std::thread thread_;
};

// So many members that have said hello and that they are ready, and have heard of the start.
inline std::vector<ScriptedMember> startedMembers(const std::string& address, int count) {
  std::vector<ScriptedMember> all;
  for (int w = 0; w < count; ++w) {
    all.emplace_back(address, w);
    all.back().sayHello();
  }
  for (auto& m : all) m.sayReady();
  for (auto& m : all) EXPECT_TRUE(m.hear().has_start());
  return all;
}

}  // namespace crema::cluster::test
