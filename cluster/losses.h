// Why a run has lost members, and what it says when it cannot go on without them.
#pragma once
#include <map>
#include <optional>
#include <string>

#include "base/error.h"

namespace crema::cluster {

class Losses {
 public:
  void lost(Error why) { last_ = std::move(why); }
  // A full disk, no memory, a file system that is gone for one member: others may do without it, though not for ever.
  // Whether they do this time; that is then the cause of losses that follow within `seconds`.
  [[nodiscard]] bool ofItsMachine(int member, const std::string& story, double now, double seconds);
  const std::optional<Error>& last() const { return last_; }
  // What ended all. Whose end only follows from what another one has said is not the cause: a host may end them all for
  // that.
  const Error& cause(double now) const { return said_ && now < saidUntil_ ? *said_ : *last_; }

 private:
  std::optional<Error> last_, said_;
  double saidUntil_ = 0;
  std::map<int, int> failures_;  // of the machine of each member
};

}  // namespace crema::cluster
