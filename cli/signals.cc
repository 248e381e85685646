#include "cli/signals.h"

#include <signal.h>

#include <atomic>

#include "base/error.h"

namespace crema::cli {
namespace {

std::atomic<bool> interrupted{false}, hungUp{false};
Request interruptEffect = Request::kStop, hangupEffect = Request::kSnapshot;

void onSignal(int number) { (number == SIGINT ? interrupted : hungUp) = true; }

}  // namespace

Request parseEffect(const std::string& flag, const std::string& text) {
  if (text == "stop") return Request::kStop;
  if (text == "snapshot") return Request::kSnapshot;
  if (text == "none") return Request::kNone;
  invalid("-{} must be stop, snapshot or none, not '{}'", flag, text);
}

void installSignals(Request onInterrupt, Request onHangup) {
  interruptEffect = onInterrupt;
  hangupEffect = onHangup;
  struct sigaction action {};
  action.sa_handler = onSignal;
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGHUP, &action, nullptr);
}

Request polledRequest() {
  const Request a = interrupted.exchange(false) ? interruptEffect : Request::kNone;
  const Request b = hungUp.exchange(false) ? hangupEffect : Request::kNone;
  if (a == Request::kStop || b == Request::kStop) return Request::kStop;
  return a == Request::kSnapshot || b == Request::kSnapshot ? Request::kSnapshot : Request::kNone;
}

}  // namespace crema::cli
