// The coordinator: who is there, who is missing, who has stopped answering; it carries no gradients.
//
// Phases: gather (all workers connect, prove the token, agree on the job) -> ready (all have built their nets) -> train
// -> finish (all report the same state). A worker that fails, closes its connection or is silent for step_timeout ends
// the run for everybody, with one error that names worker, ranks, host, step, cause and remedy. Unauthenticated clients
// get no answer and change nothing. Start carries a generation number that every data frame repeats, so that a later
// version can replace workers.
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "base/socket.h"
#include "wire.pb.h"

namespace crema::cluster {

struct CoordinatorOptions {
  std::string host = "127.0.0.1";
  int port = 0;
  std::string token;
  int ranks = 1, workers = 1;
  double joinTimeout = 60, stepTimeout = 60;
  std::string jobDigest;  // cluster/job.h
  std::string modelHome;  // where worker 0's final model is written, as wire.Job's model_home
};

// Emit is called from the thread of run() only.
class Coordinator {
 public:
  using Emit = std::function<void(const wire::Event&)>;
  Coordinator(const CoordinatorOptions& options, Emit emit);
  ~Coordinator();
  std::string address() const;
  // Until all workers have finished (returns) or the run has failed (throws; the error has been sent to every worker).
  // `stop` ends it early.
  void run(const Interrupt* stop);

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace crema::cluster
