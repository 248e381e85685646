// How a net computes where nothing goes backward and few blobs are looked at: the values of these, bit for bit as
// Net::forward() has them, in less time and memory.
//   - Layers behind a convolution that change its outputs number by number (BatchNorm, Scale, ReLU, Dropout in phase
//     TEST, Eltwise's sum) are steps of it, done while a block of outputs is in a cache (kernels/epilogue.h).
//   - Blobs that nobody looks at share one stretch of memory where no two of them are needed at the same time.
// Weights are not its business: kernels::FrozenWeights.
//
// A step is merged where the blob between has no other reader and nobody asked for it, and where the step's other bottom
// is complete before the convolution. Blobs of layers without bottoms keep memory of their own, as they may keep values
// from pass to pass, unless their layer writes them anew in each (Layer::renewsTops()); so do those of Python layers.
#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

#include "net/net.h"
#include "net/placement.h"

namespace crema::net {

class TrainingPlan;

class ScoringPlan {
 public:
  // kept: blobs whose values are looked at after a pass, beside the net's outputs; others have no defined values then, but
  // for those with memory of their own. The net must live longer, and is not to go backward.
  // lender: a plan whose memory is taken, as nothing of it is needed while this one computes; it must live longer as well.
  explicit ScoringPlan(Net& net, const std::set<std::string>& kept = {}, TrainingPlan* lender = nullptr);

  double forward();  // the weighted sum of losses
  // One layer after the other, as forward() does: nothing happens for a layer that another computes.
  double forwardLayer(int i);
  int computedBy(int i) const { return layers_[static_cast<size_t>(i)].by; }  // i, or the convolution whose step it is
  int forwardBy(int i) const { return computedBy(i); }
  int backwardBy(int i) const { return computedBy(i); }
  // Blobs that share the plan's memory get memory of their own, without values; it computes no more.
  void giveBack();

 private:
  struct Merged {
    int layer, bottom;  // the step is of this bottom
  };
  struct Planned {
    int by;
    std::vector<Merged> steps;
  };
  struct Lifetime {  // of memory
    Need need;
    bool shared = true;  // with other blobs
  };

  void merge(int convolution);
  int nextStep(int convolution, int last, const Blob* made) const;
  bool isKept(const Blob* blob) const { return kept_.count(blob) > 0; }
  void placeBlobs(TrainingPlan* lender);
  std::vector<Lifetime> lifetimes() const;

  Net& net_;
  std::set<const Blob*> kept_;
  const std::map<const Blob*, Blob*> memoryOf_;  // memoryOwners()
  std::vector<Planned> layers_;
  std::vector<Blob*> placed_;  // in shared memory
  Blob memory_;
};

}  // namespace crema::net
