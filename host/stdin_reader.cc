#include "host/stdin_reader.h"

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdio>
#include <thread>

#include "base/error.h"

namespace crema::host {
namespace {

constexpr unsigned kUnwindSeconds = 3;  // for what the interrupt ends: a mesh, files, a last message

void give(const StdinEnd& end, const Error& why) {
  end.interrupt.raise(why);
  if (end.ended) end.ended(why);
}

void dropRest() {
  char rest[4096];
  while (::read(STDIN_FILENO, rest, sizeof rest) > 0) {
  }
}

}  // namespace

void followStdin(const StdinEnd& end, const std::function<bool()>& next) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  std::thread([end, next] {
    try {
      while (next()) {
      }
    } catch (...) {
      give(end, asError(std::current_exception()));
      dropRest();
    }
    give(end, Error(ErrorKind::kStopped, fmt::format("stdin was closed: {} is gone", end.whose)));
    ::sleep(kUnwindSeconds);
    ::_exit(3);
  }).detach();
}

void exitBesideStdin() {
  std::fflush(stdout);
  ::_exit(0);
}

}  // namespace crema::host
