// SIGINT, SIGHUP and SIGTERM as requests that the training loop polls: stop, snapshot, none as in Caffe. Handlers are
// installed first of all, so that a signal from before the training is kept until it is polled.
#pragma once
#include <string>

#include "train/trainer.h"

namespace crema::host {

train::Request parseEffect(const std::string& flag,
                           const std::string& text);  // "stop", "snapshot", "none"; invalid() names the flag

// SIGTERM announces SIGKILL, so "snapshot" also stops after the snapshot (whatever snapshot_after_train says). "":
// snapshot and stop where the solver has a snapshot_prefix, else stop.
train::Request parseTermEffect(const std::string& flag, const std::string& text, bool prefixIsSet);

struct SignalEffects {
  train::Request interrupt = train::Request::kStop, hangup = train::Request::kSnapshot,
                 terminate = train::Request::kSnapshotAndStop;
};
void catchSignals();           // installs the handlers
void leaveInterruptsToHost();  // a terminal's Ctrl-C reaches a host program's children as well, and is the host's to answer
void setEffects(const SignalEffects& effects);  // also of signals that came before
[[nodiscard]] train::Request polledRequest();   // the effects of all signals since the last call
bool endedByTerm();                             // the stop that was polled came from SIGTERM
constexpr int kEndedByTerm = 128 + 15;          // the exit code after SIGTERM, which must not look like success

}  // namespace crema::host
