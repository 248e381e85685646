// Which rows of a queue's feed have come, where they are sharded over nodes. A task that Spark repeats feeds its partition
// from the beginning, and the rows that a node gets of a partition have places, counted from 0: what has come is left out.
// So every row counts once, whatever fails, as long as a partition has its rows in the same order again.
//
// When the host has all tasks' ends it has the rows counted; a task that is then still on its way brings nothing more.
#pragma once
#include <cstdint>
#include <map>
#include <set>

#include "node.pb.h"

namespace crema::node {

class Places {
 public:
  // `count` rows from that place on have come; returns how many of them had come before. kData when the call is over, or
  // when rows between are missing.
  int64_t add(const wire::NodeRequest::Place& from, int64_t count);
  // No more rows of this call of train(), and of those before it, are taken; returns how many have come of it.
  int64_t end(int64_t call);
  void came(int64_t count) { rows_ += count; }  // rows of any kind
  void endEpoch() { rows_ = 0; }
  int64_t rows() const { return rows_; }  // since the last end of an epoch

 private:
  std::map<int64_t, std::map<int64_t, int64_t>> came_;  // of a call, of a partition: rows
  std::set<int64_t> over_;                              // calls
  int64_t rows_ = 0;
};

}  // namespace crema::node
