// Processes that Spark starts although the member whose place they would take is well, or has done its work: it repeats a
// whole stage when rows are lost that one of its tasks needs, and leaves the other tasks running. Each gets a place that becomes empty. Taking
// places from those that are well would end all that have the state; refusing would leave the place that the stage was
// repeated for empty, as its slot goes to the next such task.
#pragma once
#include <map>
#include <memory>
#include <vector>

#include "cluster/roster.h"

namespace crema::cluster {

class Reserve {
 public:
  // Whether who says hello belongs here: of another task or attempt of the stage than the member, which is there. A
  // place may have been given to the process of another partition, and where executors have several slots the
  // partition's own comes beside it.
  static bool takes(const control::ToCoordinator::Hello& hello, const Member& member);
  void add(std::shared_ptr<Channel> process) { processes_.push_back(std::move(process)); }
  void gone(const std::shared_ptr<Channel>& process) { std::erase(processes_, process); }
  // Gives places that are empty, each to one, which has patience::kPromise to come as that member. now: seconds.
  void fill(const Roster& roster, double now);
  void tellAll(const control::ToMember& message) const;

 private:
  std::vector<std::shared_ptr<Channel>> processes_;
  std::map<size_t, double> promised_;  // when the place was last given
};

}  // namespace crema::cluster
