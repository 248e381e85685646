// Training a Caffe net, as the coordinator of its workers sees it.
#pragma once
#include <string>

#include "cluster/work.h"
#include "worker/model_home.h"

namespace crema::worker {

class Training : public cluster::Work {
 public:
  // modelHome: where worker 0's final model is written, as wire.Job's model_home. kInvalid unless 1 <= workers <= ranks.
  Training(int ranks, int workers, std::string modelHome);
  cluster::Naming naming() const override;
  std::string remedyForMissing() const override;
  std::string remedyForLoss() const override;
  // The same records and weights everywhere: nothing later would reveal a difference; the model would be wrong without
  // an error.
  void checkStart(const cluster::Roster& roster) const override;
  void checkEnd(const cluster::Roster& roster) const override;
  // Progress names the slowest worker when it computes a fifth longer than the fastest, as the others wait for it.
  void complete(const cluster::Roster& roster, wire::Event& report) const override;
  [[nodiscard]] bool take(const control::ToCoordinator::Piece& piece, const std::string& sender) override;

 private:
  int ranks_, workers_;
  ModelHome model_;
};

}  // namespace crema::worker
