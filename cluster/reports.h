// What the coordinator's host hears: of members, of pauses, and what members report, each thing once.
#pragma once
#include <algorithm>
#include <functional>
#include <set>
#include <utility>
#include <vector>

#include "cluster/roster.h"
#include "cluster/work.h"
#include "wire.pb.h"

namespace crema::cluster {

class Reports {
 public:
  explicit Reports(std::function<void(const wire::Event&)> emit) : emit_(std::move(emit)) {}
  void listening(const std::string& address);
  void joined(int member, const Roster& roster);
  void preparing(const Roster& roster, double now);  // not too often: how many members have their rows
  void started();
  void lost(int member, int attempt, const std::string& story, bool replaced, bool last, ErrorKind kind);
  // Nobody trains from now on, unless nobody does already.
  void paused(double now) {
    if (since_ < 0) since_ = now;
  }
  // The same, as the silence of a member shows late: nobody has done a pass since `since`.
  void stood(double since, double now) {
    paused(since);
    since_ = std::min(since_, since), seen_ = now;
  }
  // A generation begins, with these newcomers, and shares of which the text says why they are not equal.
  void begins(std::vector<int> came, std::string shares) { came_ = std::move(came), shares_ = std::move(shares); }
  // Its first step is done: the pause is over, if there was one.
  void wentOn(uint32_t generation, size_t members, int64_t iteration, double now);
  // What a member says; a test that was done anew, as its member was lost before all had its result, is said once.
  void forward(wire::Event event, const Roster& roster, const Work& work);
  int64_t lastSnapshot() const { return snapshot_; }  // its iteration; -1: none was reported

 private:
  std::function<void(const wire::Event&)> emit_;
  double since_ = -1;                        // the present pause; -1: none
  double seen_ = -1;                         // when the silence was seen that it began with; -1: there was none
  std::vector<int> came_;                    // newcomers of the present generation
  std::string shares_;                       // of it
  std::set<std::pair<int64_t, int>> tests_;  // that have been reported
  int64_t snapshot_ = -1;
  double lastPreparing_ = -1e9;
};

}  // namespace crema::cluster
