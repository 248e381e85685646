// Which worker of a run has how many ranks, from one generation to the next: equal numbers, until what was measured says that
// this costs time (shares.h).
#pragma once
#include <map>
#include <string>
#include <vector>

#include "worker/shares.h"

namespace crema::worker {

class Balance {
 public:
  // window: seconds for which speeds are measured before they count; 0: all workers have equal shares for ever.
  Balance(int ranks, double window) : ranks_(ranks), window_(window) {}
  // A generation begins with these members, who have spent so much until now, each by its present process. They have equal shares, until wantsOthers() has
  // been true once; then shares by the speeds of that moment, and a process that has come since counts as the mean of the
  // others.
  void begin(const std::vector<int>& members, const std::vector<Spent>& spent);
  const Shares& shares() const { return shares_; }
  // For people: how many ranks each has, and why; "" for equal shares, as long as they were never others.
  const std::string& text() const { return text_; }
  // Whether the generation should be left for other shares; true once in each. Speeds are measured anew in each window. With every change
  // windows become twice as long, up to 32 times: where speeds go up and down, the pauses for it become rare.
  bool wantsOthers(const std::vector<Spent>& spent, double now);

 private:
  void openWindow(const std::vector<Spent>& spent, double now);
  std::vector<double> secondsPerRank(const std::vector<Spent>& spent) const;
  std::string reason(const Better& better) const;

  int ranks_;
  double window_;
  std::vector<int> members_;  // of the generation; by place in it:
  Shares shares_;
  std::vector<Spent> atFirst_;  // when the present window began; empty: none has
  double until_ = 0;            // its end
  bool decided_ = false;
  int changes_ = 0;
  std::map<int, double> speeds_;  // by member: seconds for the pass of a rank, when shares were last chosen by them
  std::string why_, text_;        // why_: of the next generation
};

}  // namespace crema::worker
