// Why a run has lost members, and what it says when it cannot go on without them.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"

namespace crema::cluster {

class Losses {
 public:
  void lost(Error why) { last_ = std::move(why); }
  // A full disk, no memory, a file system that is gone for one member: others may do without it, though not for ever.
  // How often that has been so for this one within patience::kFailuresIn, now included.
  [[nodiscard]] int ofItsMachine(int member, double now);
  static std::string often(int time);  // ", for the second time within an hour"; "" for the first
  // That is the cause of the losses until then.
  void follow(Error cause, double until) { said_ = std::move(cause), saidUntil_ = until; }
  const std::optional<Error>& last() const { return last_; }
  // What ended all. Whose end only follows from what another one has said is not the cause: a host may end them all for
  // that.
  const Error& cause(double now) const { return said_ && now < saidUntil_ ? *said_ : *last_; }

 private:
  std::optional<Error> last_, said_;
  double saidUntil_ = 0;
  std::map<int, std::vector<double>> failures_;  // of the machine of each member: when
};

}  // namespace crema::cluster
