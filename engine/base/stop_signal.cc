#include "base/stop_signal.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>

#include "base/error.h"

namespace crema {
namespace {
std::atomic<int> come{0};
}

void awaitStopSignals() {
  struct sigaction action {};
  action.sa_handler = [](int number) { come = number; };
  action.sa_flags = SA_RESTART;
  for (const int number : {SIGINT, SIGTERM}) sigaction(number, &action, nullptr);
}

void checkStopSignal() {
  if (come) throw Error(ErrorKind::kStopped, "stopped by a signal; nothing was left behind");
}

int stopSignal() { return come; }

void endBySignal(int number) {
  ::signal(number, SIG_DFL);
  ::raise(number);
  ::_exit(128 + number);
}

}  // namespace crema
