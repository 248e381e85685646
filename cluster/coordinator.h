// The coordinator: who is there, who is missing, who has stopped answering; it carries no gradients and no rows.
//
// Phases: gather (all members connect, prove the token, agree on the job) -> ready (all can begin) -> run -> finish (all
// have ended). A member that closes its connection or is silent for step_timeout is lost: then the run ends for everybody,
// with one error that names member, host, step, cause and remedy, or goes on in another generation (membership.h). A member
// that fails by itself ends the run, as the others would fail as well, unless it is an error of its machine. Unauthenticated clients get no answer and change
// nothing.
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "base/handshake.h"
#include "base/socket.h"
#include "cluster/membership.h"
#include "cluster/work.h"
#include "wire.pb.h"

namespace crema::cluster {

struct CoordinatorOptions {
  std::string host = "127.0.0.1";
  int port = 0;
  int listener = -1;  // a listening socket, which becomes the coordinator's, instead of host and port
  Secret secret{""};
  int members = 1;
  double joinTimeout = 60, stepTimeout = 60;
  std::string jobDigest;  // of what all members must agree on
  Replacement replacement = Replacement::kFail;
  double replacementTimeout = 60;
  bool placesReturn = false;  // a member that is lost before all are there leaves its place to its next attempt
  int least = 0, first = 0;   // as Membership::Rules has them
};

// Emit is called from the thread of run() only.
class Coordinator {
 public:
  using Emit = std::function<void(const wire::Event&)>;
  Coordinator(const CoordinatorOptions& options, std::unique_ptr<Work> work, Emit emit);
  ~Coordinator();
  std::string address() const;
  // Until all members have finished (returns) or the run has failed (throws; the error has been sent to every member).
  // `stop` ends it early.
  void run(const Interrupt* stop);
  // Behind run(), however it ended: tells members that come late that it is over, until `stop`, or for patience::kLate.
  void answerLate(const Interrupt& stop);
  // From any thread, while run() goes on. Of the host: to all members; then, that the run may end (Work::over).
  void send(const wire::Note& note);
  void askForEnd();

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace crema::cluster
