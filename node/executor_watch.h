// Says when the executor that a node belongs to has ended. Its end has no other sign: the node is nobody's child any more
// when the task that has started it has left.
#pragma once
#include <sys/types.h>

#include <functional>
#include <thread>

#include "base/socket.h"

namespace crema::node {

class ExecutorWatch {
 public:
  // pid: 0 watches nothing. ended: called once, from a thread of this object, unless the interrupt comes first, which
  // must be raised before the watch is destroyed.
  ExecutorWatch(pid_t pid, const Interrupt& interrupt, std::function<void()> ended);
  ~ExecutorWatch();
  ExecutorWatch(const ExecutorWatch&) = delete;

 private:
  std::thread thread_;
};

}  // namespace crema::node
