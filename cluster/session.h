// A member's connection to the coordinator: Hello, a heartbeat every second, reports, and the coordinator's message
// when the run is over. One thread reads and one sends heartbeats, which also ends a
// generation that nobody gets out of (decision 0157).
#pragma once
#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/handshake.h"
#include "base/mutex.h"
#include "cluster/channel.h"
#include "cluster/host_activity.h"
#include "cluster/membership.h"
#include "control.pb.h"

namespace crema::cluster {

// From the name of a member's kind: kInvalid, kData and kInternal stay, as they are so for all; else kPeer.
ErrorKind kindForAll(const std::string& text);

// The run had ended before this member could join, or before it was needed.
class RunOver : public Error {
 public:
  explicit RunOver(std::string message) : Error(ErrorKind::kPeer, std::move(message)) {}
};

struct SessionOptions {
  std::string coordinator;  // its address
  Secret secret{""};
  std::string member;                         // "worker 2", for messages
  double joinTimeout = 60, stepTimeout = 60;  // seconds to join; without a message, or room for one, it is lost
  // It listened before this process was started, and answers whoever comes behind the run: a refused connection is an error.
  bool coordinatorListens = false;
  std::function<void(const wire::Note&)> noted = {};  // what the coordinator's host says; from the listening thread
};

class Session {
 public:
  // Connects, proves the token, sends Hello. `interrupt` is raised with the coordinator's error when it aborts the run,
  // or when the connection is lost. host: messages of the host count as progress while a member waits for it.
  // Sending ends with the interrupt's error while the coordinator does not read, but for failed().
  Session(const SessionOptions& options, const control::ToCoordinator::Hello& hello, Interrupt& interrupt,
          const HostActivity* host = nullptr);
  ~Session();

  void ready(const std::string& stateDigest, const std::string& records);
  // Of the next generation, of which this member is from now on; throws the interrupt's error, or RunOver. meanwhile:
  // called several times a second; what it throws ends the wait.
  [[nodiscard]] control::ToMember::Start waitForStart(const std::function<void()>& meanwhile = nullptr);
  // This process is in reserve, and the place of that member is free: the interrupt is raised, and a process is to be
  // started as that one. -1: none is.
  int place() const { return place_; }
  // `left` is raised when the coordinator wants the present generation left at once; null: nothing is. And when `ends` says
  // so, which the thread that sends heartbeats asks several times a second.
  void watch(Interrupt* left, std::function<bool()> ends = nullptr);
  bool leaving() const;     // the coordinator has said so
  bool pauseAsked() const;  // it wants it left behind the next step that all agree on
  // This member has left it, with the state before step `iteration`, and cannot reach those; the text says how that showed.
  // taken: of its last snapshot; -1: none.
  void paused(int64_t iteration, const Unreached& others = {}, const std::string& story = "", int64_t taken = -1);
  void report(const wire::Event& event);
  void spent(const control::ToCoordinator::Spent& spent);  // goes out with each heartbeat
  void failed(const Error& error);                         // never throws
  void sendModel(const std::string& path);                 // returns when the coordinator has written it
  void finished(int64_t iteration, const std::string& digest);
  // false: the run is not over, as the present generation is left at once.
  [[nodiscard]] bool waitForBye();
  // After an error between members: waits that long for the coordinator's own error, which names the cause better.
  // nullopt: there is none, or the run is over.
  std::optional<Error> coordinatorsError(double seconds);
  void checkNeeded();  // throws RunOver where the run is over, and this member was in no generation of it

  // When the coordinator said last that a member computes, or that bytes have moved between members, by
  // monotonicSeconds(); 0: it has not.
  std::atomic<double> someoneAdvanced{0};
  // Written by the training thread, sent with every heartbeat.
  std::atomic<int64_t> iteration{0}, passes{0};
  std::atomic<bool> waiting{false};
  std::atomic<double> computeSeconds{0};
  std::atomic<int64_t> transferred{0};  // bytes to and from other members; from any thread

 private:
  void end();  // stops and joins the threads that have started
  void listen();
  void take(const control::ToMember& message) CREMA_REQUIRES(mutex_);
  void beat();
  void sendBeat();
  void askForEnd();
  void waitForKept(const std::function<bool()>& said);
  bool waitFor(const std::function<bool()>& condition, double seconds);
  void waitForMessage(const std::function<bool()>& said, const std::function<void()>& meanwhile = nullptr);

  Channel channel_;
  const std::string over_;  // what RunOver says
  double timeout_;
  const std::function<void(const wire::Note&)> noted_;
  Interrupt& interrupt_;
  const HostActivity* host_;
  Interrupt closing_;
  Interrupt lastWords_;  // raised when no heartbeat is worth a wait: at the failure, and at the end
  Mutex mutex_;
  std::condition_variable changed_;
  std::optional<control::ToMember::Start> start_ CREMA_GUARDED_BY(mutex_);
  Interrupt* left_ CREMA_GUARDED_BY(mutex_) = nullptr;
  std::function<bool()> ends_ CREMA_GUARDED_BY(mutex_);
  control::ToMember::Regroup regroup_ CREMA_GUARDED_BY(mutex_);  // the last one
  std::atomic<uint32_t> generation_{0};                          // the present one, or the last that was left
  std::atomic<uint32_t> next_{0}, nextAtBorder_{0};              // that regroup_ names
  control::ToCoordinator::Spent spent_ CREMA_GUARDED_BY(mutex_);
  std::optional<Error> error_ CREMA_GUARDED_BY(mutex_);
  bool bye_ CREMA_GUARDED_BY(mutex_) = false;
  control::ToMember::Kept kept_ CREMA_GUARDED_BY(mutex_);  // the last one
  std::atomic<int> place_{-1};
  std::thread listener_, beater_;
};

}  // namespace crema::cluster
