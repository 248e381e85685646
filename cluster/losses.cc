#include "cluster/losses.h"

#include "cluster/patience.h"

namespace crema::cluster {

bool Losses::ofItsMachine(int member, const std::string& story, double now, double seconds) {
  if (++failures_[member] > patience::kFailures) return false;
  said_ = Error(ErrorKind::kIo, story), saidUntil_ = now + seconds;
  return true;
}

}  // namespace crema::cluster
