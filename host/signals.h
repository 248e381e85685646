// SIGINT, SIGHUP and SIGTERM as wishes that the training loop polls: stop, snapshot, none as in Caffe. The handlers
// come first of all: a wish from before the training waits until it is polled.
#pragma once
#include <string>

#include "train/trainer.h"

namespace crema::host {

train::Request parseEffect(const std::string& flag,
                           const std::string& text);  // "stop", "snapshot", "none"; invalid() names the flag

// SIGTERM comes before SIGKILL: after a snapshot there is nothing to go on to, so "snapshot" is one more than
// snapshot_after_train may give, and then the stop. "": snapshot where the solver says where to, else stop.
train::Request parseTermEffect(const std::string& flag, const std::string& text, bool prefixIsSet);

struct SignalEffects {
  train::Request interrupt = train::Request::kStop, hangup = train::Request::kSnapshot,
                 terminate = train::Request::kSnapshotAndStop;
};
void catchSignals();                            // from here on they are kept
void setEffects(const SignalEffects& effects);  // of those kept as well
train::Request polledRequest();                 // the effects of all signals since the last call
bool endedByTerm();                             // a stop was polled that SIGTERM wished
constexpr int kEndedByTerm = 128 + 15;          // the exit code then: whoever starts programs must not read success

}  // namespace crema::host
