#include "host/signals.h"

#include <signal.h>

#include <atomic>
#include <cstdint>
#include <ctime>

#include "base/error.h"

namespace crema::host {
namespace {

std::atomic<bool> interrupted{false}, hungUp{false}, terminated{false}, ended{false};
SignalEffects effects;

constexpr int64_t kPatienceSeconds = 10;
// When the first signal came that has not been polled yet, or that asked to stop, as nowSeconds() gives it; 0: none.
std::atomic<int64_t> requestedSince{0};

// Seconds of the monotonic clock plus one: never 0, which stands for no signal.
int64_t nowSeconds() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec + 1;
}

// A second SIGINT or SIGTERM after kPatienceSeconds ends the process at once: it may hang in a write to a log that
// nobody reads.
void onSignal(int number) {
  int64_t none = 0;
  if (!requestedSince.compare_exchange_strong(none, nowSeconds()) && number != SIGHUP &&
      nowSeconds() - none >= kPatienceSeconds) {
    ::signal(number, SIG_DFL);
    ::raise(number);
  }
  (number == SIGINT ? interrupted : number == SIGHUP ? hungUp : terminated) = true;
}

}  // namespace

train::Request parseEffect(const std::string& flag, const std::string& text) {
  if (text == "stop") return train::Request::kStop;
  if (text == "snapshot") return train::Request::kSnapshot;
  if (text == "none") return train::Request::kNone;
  invalid("-{} must be stop, snapshot or none, not '{}'", flag, text);
}

train::Request parseTermEffect(const std::string& flag, const std::string& text, bool prefixIsSet) {
  if (text.empty()) return prefixIsSet ? train::Request::kSnapshotAndStop : train::Request::kStop;
  const train::Request effect = parseEffect(flag, text);
  return effect == train::Request::kSnapshot ? train::Request::kSnapshotAndStop : effect;
}

void catchSignals() {
  struct sigaction action {};
  action.sa_handler = onSignal;
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGHUP, &action, nullptr);
  struct sigaction before {};
  sigaction(SIGTERM, nullptr, &before);
  // Where it is ignored, the parent process passes it on as a message.
  if (before.sa_handler != SIG_IGN) sigaction(SIGTERM, &action, nullptr);
}

void leaveInterruptsToHost() { ::signal(SIGINT, SIG_IGN); }

void setEffects(const SignalEffects& wanted) { effects = wanted; }

train::Request polledRequest() {
  const train::Request term = terminated.exchange(false) ? effects.terminate : train::Request::kNone;
  if (train::wantsStop(term)) ended = true;
  const train::Request all = (interrupted.exchange(false) ? effects.interrupt : train::Request::kNone) |
                             (hungUp.exchange(false) ? effects.hangup : train::Request::kNone) | term;
  static bool stopping = false;  // polled by one thread at a time
  stopping |= train::wantsStop(all);
  if (!stopping) requestedSince = 0;
  return all;
}

bool endedByTerm() { return ended; }

}  // namespace crema::host
