// A function run in a forked child, for code that may crash or hang on what it reads.
#pragma once
#include <cstdint>
#include <functional>
#include <string>

namespace crema {

struct ChildLimits {
  double seconds;  // then the child is killed
  int64_t bytes;   // of address space beyond what this process has now
};
struct [[nodiscard]] ChildResult {
  std::string bytes;  // what body returned
  std::string died;   // "ended with signal 11 (Segmentation fault)"; empty when it did not
};
// An Error that leaves body is thrown here, kind, message and frames as one text. The child has one thread, leaves no
// core file and dies with this process. body must not log and must not need locks that other threads may hold.
ChildResult inChild(const ChildLimits& limits, const std::function<std::string()>& body);
// Of a status of waitpid(): "ended with signal 11 (Segmentation fault)", "ended with code 4"; of code 0 too.
std::string howItEnded(int status);
// What a user can do when the system starts no process or thread. It depends on errno and on whether the address space
// is limited: EAGAIN stands for too many threads and for no memory for a thread's stack alike.
std::string startRemedy(int code);
// Called in the child: default signal handling, no core file, `bytes` more address space at most.
void prepareChild(int64_t bytes);

}  // namespace crema
