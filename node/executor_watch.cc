#include "node/executor_watch.h"

#include <poll.h>
#include <signal.h>

#include <cerrno>

namespace crema::node {
namespace {

// Looks once a second, as kernels before 5.3 have no descriptors of processes. false: the interrupt came first.
bool endOf(pid_t pid, const Interrupt& interrupt) {
  while (!interrupt.raised()) {
    if (::kill(pid, 0) != 0 && errno == ESRCH) return true;
    pollfd p{interrupt.descriptor(), POLLIN, 0};
    ::poll(&p, 1, 1000);
  }
  return false;
}

}  // namespace

ExecutorWatch::ExecutorWatch(pid_t pid, const Interrupt& interrupt, std::function<void()> ended) {
  if (pid <= 0) return;
  thread_ = std::thread([pid, &interrupt, ended = std::move(ended)] {
    if (endOf(pid, interrupt)) ended();
  });
}

ExecutorWatch::~ExecutorWatch() {
  if (thread_.joinable()) thread_.join();
}

}  // namespace crema::node
