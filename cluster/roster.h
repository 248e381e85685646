// The workers of a run as the coordinator knows them: who is here, how far, with which records and weights.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "cluster/channel.h"
#include "control.pb.h"

namespace crema::cluster {

struct Member {
  std::shared_ptr<Channel> channel;
  control::ToCoordinator::Hello hello;
  control::ToCoordinator::Beat beat;
  bool ready = false, finished = false;
  double heard = 0,
         moved = 0;        // when it last said anything; when its training thread last moved (or waited for others)
  double prepared = -1e9;  // when its host last said that it still prepares rows
  std::string digest, records;  // of the state; of the data
};

class Roster {
 public:
  Roster(int ranks, int workers);  // kInvalid unless 1 <= workers <= ranks
  int count(bool Member::*flag) const;
  std::string describe(int w) const;  // "worker 2 (ranks 4 to 5, host a 10.0.0.3, pid 77)"
  std::string missing() const;        // those that are not ready, by name
  bool late(double since) const;      // one is not ready, nor were rows prepared for it since then
  int find(const std::shared_ptr<Channel>& channel) const;  // -1: none
  // All workers are in one step or two neighbouring ones; beats come every second only.
  int64_t latestBeat() const;
  // Throws unless all read the same records and start from the same weights: nothing later would show it, the model
  // would just be another.
  void compare() const;

  std::vector<Member> members;

 private:
  int ranks_;
};

}  // namespace crema::cluster
