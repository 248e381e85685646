// A forked child that answers one request after another, for code that may crash or hang on what it reads and is needed
// for as long as a run lasts. It has one thread, none of this process's open files, leaves no core file, and ends when
// this object is destroyed, when this process ends (the parent's end of their socket pair closes), or when an answer
// takes longer than `limits` allows.
#pragma once
#include <functional>
#include <string>
#include <string_view>

#include "base/child.h"
#include "base/mutex.h"

namespace crema {

class AnsweringChild {
 public:
  // limits: seconds for one request to be taken and for its answer, bytes of address space beyond what this process has now. answer must not log and
  // must not need locks that other threads may hold; what it keeps between requests lives in the child.
  AnsweringChild(const ChildLimits& limits, std::function<std::string(std::string_view request)> answer);
  ~AnsweringChild();
  AnsweringChild(const AnsweringChild&) = delete;

  // An Error of answer is thrown here. A child that died says how from then on. Any thread, one at a time.
  ChildResult ask(std::string_view request);

 private:
  void end() CREMA_REQUIRES(mutex_);
  [[nodiscard]] bool receive(void* to, size_t bytes) const;
  [[nodiscard]] bool send(std::string_view bytes) const;

  Mutex mutex_;
  ChildLimits limits_;
  int pid_ = -1, fd_ = -1;
  std::string died_ CREMA_GUARDED_BY(mutex_);
};

}  // namespace crema
