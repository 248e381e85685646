// A child process that is this process's own: it gets messages on its stdin, which stays open while it is wanted, and
// its stderr is relayed to the log line by line, but for the error with which it ends.
#pragma once
#include <google/protobuf/message_lite.h>
#include <sys/types.h>

#include <string>
#include <thread>
#include <vector>

#include "base/socket.h"

namespace crema::host {

// One thread at a time may use it.
class ChildProcess {
 public:
  // The first of these paths that can be executed; arguments[0] is the program's name for itself. The child has a
  // process group of its own, no stdout, and dies with the thread that started it. kIo when no process can be started.
  ChildProcess(std::vector<std::string> paths, std::vector<std::string> arguments);
  ~ChildProcess();  // kills it if it is still there
  ChildProcess(const ChildProcess&) = delete;

  // Delimited, on its stdin. Nothing happens when it has ended, as ended() says how. If it has not read the message
  // within ten seconds its stdin is closed, so that half a message is its last.
  void send(const google::protobuf::MessageLite& message);

  bool there() const { return pid_ >= 0; }  // false: its end has been seen
  // The way it ended, if by itself and with an error; else empty. Said once.
  std::string ended();
  bool killed() const { return killed_; }  // that was a signal
  // Behind its end: the error that it wrote last, "crema: error: ..." with its frames; "": none, or it was taken. What nobody takes
  // is relayed when this object goes.
  std::string takeError();

  // Waits up to `grace` seconds for the child, then kills it. Without grace its stdin is closed before. One that does not end a
  // second later is left to the kernel, with a warning.
  void end(double grace);

 private:
  ChildProcess() = default;
  void closeStdin();
  bool endsWithin(double seconds);  // or has ended
  bool reap(int options, int* status);

  pid_t pid_ = -1;
  int stdin_ = -1;
  bool killed_ = false;
  std::string error_;  // the relay's until that has ended
  Interrupt gone_;     // raised when the child has ended, or was given up: all of its lines are in the pipe then
  std::thread relay_;
};

// Relays what takeError() gave.
void relayError(const std::string& error);

// The executable of this process, for a child that runs it as well.
std::vector<std::string> ownExecutable();

}  // namespace crema::host
