// Training a Caffe net, as the coordinator of its workers sees it.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cluster/work.h"
#include "collective/tree.h"
#include "worker/balance.h"
#include "worker/model_home.h"

namespace crema::worker {

class Training : public cluster::Work {
 public:
  // modelHome: where worker 0's final model is written, as wire.Job's model_home. rowsStay: a worker has only the rows of
  // its own ranks, so nobody else can compute them. rebalance: seconds in which speeds are measured before slow workers
  // get fewer ranks (balance.h); 0: never. kInvalid unless 1 <= workers <= ranks.
  Training(int ranks, int workers, std::string modelHome, bool rowsStay = false, double rebalance = 0);
  cluster::Naming naming() const override;
  std::string remedyForMissing() const override;
  std::string remedyForLoss() const override;
  // The same records and weights everywhere: nothing later would reveal a difference; the model would be wrong without
  // an error.
  void checkStart(const cluster::Roster& roster) const override;
  bool sharesMove() const override { return !rowsStay_; }
  // As Balance has it.
  Division begin(const cluster::Roster& roster, const std::vector<int>& members) override;
  bool wantsOtherShares(const cluster::Roster& roster, double now) override;
  std::string refusal(const cluster::Roster& roster, int newcomer) const override;
  void checkEnd(const cluster::Roster& roster) const override;
  // Progress names the slowest worker when it has computed a fifth longer than the fastest since the present generation
  // began, as the others wait for it.
  void complete(const cluster::Roster& roster, wire::Event& report) const override;
  [[nodiscard]] bool take(const control::ToCoordinator::Piece& piece, const std::string& sender) override;
  std::string storyOfDisk(double seconds) const override { return model_.unsaved(seconds); }

 private:
  std::vector<Spent> spentBy(const cluster::Roster& roster) const;  // the present members

  int ranks_, workers_;
  bool rowsStay_;
  // Of each worker, for messages: shared with naming().
  std::shared_ptr<std::vector<collective::RankRange>> ranges_;
  std::string records_;           // what all read
  std::map<int, double> before_;  // the present members, and the seconds that each had computed before
  std::vector<int> members_;      // the present ones
  Balance balance_;
  ModelHome model_;
};

}  // namespace crema::worker
