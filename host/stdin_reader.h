// How a child of a host program follows its stdin beside its work, and how it ends while a thread still reads there.
#pragma once
#include <unistd.h>

#include <functional>
#include <string>
#include <utility>

#include "base/socket.h"
#include "host/job_io.h"

namespace crema::host {

// Who writes to this process, and what becomes of its end. All must live as long as the process.
struct StdinEnd {
  const char* whose;                             // "the task that started this process"
  Interrupt& interrupt;                          // raised with the reason
  std::function<void(const Error&)> ended = {};  // also gets the reason; called by the reading thread
};

// Calls next() in a thread of its own until it gives false. When it throws, that is the reason, and the rest of stdin is
// read and dropped: a host that is still writing must not get a broken pipe before it reads Failed, which another thread
// sends. At the end of stdin the reason is that it was closed, and if the process is still there three seconds later it
// exits. The second safeguard: the kernel kills the process when the thread that started it ends. Waits for bytes have
// no deadline, as a host may have nothing to say for hours.
void followStdin(const StdinEnd& end, const std::function<bool()>& next);

// The same for delimited messages of one type, each given to `take`. `what` names them in errors.
template <class Message>
void readStdin(const char* what, const StdinEnd& end, const std::function<void(Message&)>& take) {
  followStdin(end, [what, take, buffer = std::string(), message = Message()]() mutable {
    if (!readDelimited(STDIN_FILENO, what, buffer, &message)) return false;
    take(message);
    return true;
  });
}

// Ends the process with code 0 and without destructors, as the thread above may still wait for bytes and use what is
// static. What was printed is written first.
[[noreturn]] void exitBesideStdin();

}  // namespace crema::host
