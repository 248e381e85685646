// The process in which the program runs: its own interpreter, started by the node, which passes its lines on, keeps the
// last of them, learns how it ended, and takes it and all that it started down.
#pragma once
#include <sys/types.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "base/mutex.h"
#include "node.pb.h"
#include "node/lines.h"

namespace crema::node {

class Program {
 public:
  // ended: called once, from a thread of this object, with what is wrong ("ended with signal 9 (Killed), ..." and
  // the last lines), or "" when it ended by itself with code 0. kIo when it cannot be started.
  Program(const wire::NodeInput::Compute& what, std::function<void(const std::string&)> ended);
  ~Program();  // kills it
  Program(const Program&) = delete;
  pid_t pid() const { return pid_; }
  // SIGABRT to it, on which Python's faulthandler writes where its threads stand, and SIGKILL to its process group after
  // that many seconds. Returns when it has ended; its last lines are then more than usual.
  void abort(double grace);
  // SIGTERM to its process group, and SIGKILL after that many seconds. Returns when it has ended.
  void end(double grace);

 private:
  void wait();
  void endBy(int signal, pid_t whom, double grace);
  std::string story(int status);

  pid_t pid_ = -1;
  std::unique_ptr<Lines> lines_;
  std::function<void(const std::string&)> ended_;
  std::atomic<bool> over_{false}, aborted_{false}, killed_{false};
  Mutex mutex_;  // of what is done to it
  std::thread waiter_;
};

}  // namespace crema::node
